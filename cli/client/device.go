package client

import (
	"context"
	"time"

	"holdfast/server/api/wire"
)

// AuthorizeDevice begins a device login. It needs no key.
func (c *Client) AuthorizeDevice(ctx context.Context, in wire.AuthorizeDevice) (wire.DeviceCodes, error) {
	return one[wire.DeviceCodes](ctx, c, "POST", "/device/authorize", in)
}

// GetDeviceToken asks once whether the login was approved. Until then it is
// refused with CodeAuthorizationPending or CodeSlowDown, and for good with
// CodeAccessDenied or CodeExpiredToken.
func (c *Client) GetDeviceToken(ctx context.Context, deviceCode string) (wire.DeviceToken, error) {
	return one[wire.DeviceToken](ctx, c, "POST", "/device/token", wire.PollDevice{DeviceCode: deviceCode})
}

// slower is how much longer to wait after slow_down, and defaultInterval how
// long where the answer does not say (RFC 8628, sections 3.5 and 3.2).
const (
	slower          = 5 * time.Second
	defaultInterval = 5 * time.Second
)

// AwaitDeviceToken polls until the person has decided or the codes have
// expired, no faster than it is told to. A connection that breaks makes it
// slower, as RFC 8628 demands, and does not end it.
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
