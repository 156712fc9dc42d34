package client

import (
	"context"
	"time"
)

// The presets of scopes that a device may ask for.
const (
	PresetReadOnly   = "read_only"
	PresetDeveloper  = "developer"
	PresetFullAccess = "full_access"
)

// AuthorizeDevice is how a device asks to be let in.
type AuthorizeDevice struct {
	ClientName  string `json:"client_name,omitempty"`
	ScopePreset string `json:"scope_preset,omitempty"`
}

// DeviceCodes are the codes of a device login (RFC 8628, section 3.2).
type DeviceCodes struct {
	DeviceCode              string `json:"device_code"` // a secret
	UserCode                string `json:"user_code"`   // for the person
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"` // with the code in it
	ExpiresIn               int    `json:"expires_in"`                // seconds
	Interval                int    `json:"interval"`                  // seconds between polls
}

// DeviceToken is a key, delivered this once.
type DeviceToken struct {
	APIKey       string       `json:"api_key"`
	Key          Key          `json:"key"`
	Organization Organization `json:"organization"`
	Projects     []Project    `json:"projects"`
}

// AuthorizeDevice begins a device login. It needs no key.
func (c *Client) AuthorizeDevice(ctx context.Context, in AuthorizeDevice) (DeviceCodes, error) {
	return one[DeviceCodes](ctx, c, "POST", "/device/authorize", in)
}

// GetDeviceToken asks once whether the login was approved. Until then it is
// refused with CodeAuthorizationPending or CodeSlowDown, and for good with
// CodeAccessDenied or CodeExpiredToken.
func (c *Client) GetDeviceToken(ctx context.Context, deviceCode string) (DeviceToken, error) {
	return one[DeviceToken](ctx, c, "POST", "/device/token", struct {
		DeviceCode string `json:"device_code"`
	}{deviceCode})
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
func (c *Client) AwaitDeviceToken(ctx context.Context, codes DeviceCodes) (DeviceToken, error) {
	interval := time.Duration(codes.Interval) * time.Second
	if interval <= 0 {
		interval = defaultInterval
	}
	for end := time.Now().Add(time.Duration(codes.ExpiresIn) * time.Second); ; {
		if time.Now().Add(interval).After(end) {
			return DeviceToken{}, &Error{Status: 400, Code: CodeExpiredToken, Message: "nobody has approved the login in time"}
		}
		if err := sleep(ctx, interval); err != nil {
			return DeviceToken{}, err
		}
		token, err := c.GetDeviceToken(ctx, codes.DeviceCode)
		switch code := CodeOf(err); {
		case err == nil:
			return token, nil
		case code == CodeAuthorizationPending:
		case code == CodeSlowDown:
			interval += slower
		case code == CodeRateLimited:
			interval = max(interval, retryAfter(err))
		case passes(ctx, err):
			interval *= 2
		default:
			return DeviceToken{}, err
		}
	}
}
