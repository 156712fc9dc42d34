package client

import (
	"context"
	"time"

	"holdfast/server/api/wire"
)

// AuthorizeDevice starts a device login. It needs no key.
func (c *Client) AuthorizeDevice(ctx context.Context, in wire.AuthorizeDevice) (wire.DeviceCodes, error) {
	return one[wire.DeviceCodes](ctx, c, "POST", "/device/authorize", in)
}

// GetDeviceToken polls once for the key. Until the login is approved, it fails
// with CodeAuthorizationPending or CodeSlowDown; CodeAccessDenied and
// CodeExpiredToken are final.
func (c *Client) GetDeviceToken(ctx context.Context, deviceCode string) (wire.DeviceToken, error) {
	return one[wire.DeviceToken](ctx, c, "POST", "/device/token", wire.PollDevice{DeviceCode: deviceCode})
}

// slower is what slow_down adds to the interval, and defaultInterval is the
// interval if the response has none (RFC 8628, sections 3.5 and 3.2).
const (
	slower          = 5 * time.Second
	defaultInterval = 5 * time.Second
)

// AwaitDeviceToken polls until the person has decided or the codes have
// expired, no faster than the API allows. A connection error lengthens the
// interval, as RFC 8628 requires, and does not end the wait.
func (c *Client) AwaitDeviceToken(ctx context.Context, codes wire.DeviceCodes) (wire.DeviceToken, error) {
	interval := time.Duration(codes.Interval) * time.Second
	if interval <= 0 {
		interval = defaultInterval
	}
	for end := time.Now().Add(time.Duration(codes.ExpiresIn) * time.Second); ; {
		if time.Now().Add(interval).After(end) {
			return wire.DeviceToken{}, &Error{Status: 400, Code: wire.CodeExpiredToken, Message: "nobody has approved the login in time"}
		}
		if err := sleep(ctx, interval); err != nil {
			return wire.DeviceToken{}, err
		}
		token, err := c.GetDeviceToken(ctx, codes.DeviceCode)
		switch code := CodeOf(err); {
		case err == nil:
			return token, nil
		case code == wire.CodeAuthorizationPending:
		case code == wire.CodeSlowDown:
			interval += slower
		case code == wire.CodeRateLimited:
			interval = max(interval, retryAfter(err))
		case passes(ctx, err):
			interval *= 2
		default:
			return wire.DeviceToken{}, err
		}
	}
}
