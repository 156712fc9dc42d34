package core

import (
	"time"

	"holdfast/engine/model"
)

// What anybody may ask for without a key or a session is limited by the
// address it comes from; guesses at a password by the account, too.
const (
	RateSignInAddress   model.RateClass = "sign_in"
	RateSignInAccount   model.RateClass = "sign_in to this account"
	RateSignInKnown     model.RateClass = "sign_in to this account from here"
	RateSetup           model.RateClass = "setup"
	RateDeviceAuthorize model.RateClass = "device_authorize"
	RateDeviceWaiting   model.RateClass = "device_authorize that may still wait"
	rateDeviceToken     model.RateClass = "device_token"
	RateUserCode        model.RateClass = "codes of tools"
)

// VisitorRates are those limits. A client polls for its key twelve times a
// minute; an office behind one address has several.
func VisitorRates() map[model.RateClass]Rate {
	return map[model.RateClass]Rate{
		RateSignInAddress:   {30, time.Minute},
		RateSignInAccount:   {10, 5 * time.Minute},
		RateSignInKnown:     {10, 5 * time.Minute},
		RateSetup:           {30, time.Minute},
		RateDeviceAuthorize: {30, time.Minute},
		RateDeviceWaiting:   {100, model.DeviceLife},
		rateDeviceToken:     {300, time.Minute},
		RateUserCode:        {60, model.DeviceLife},
	}
}

// ThrottleVisitor draws on the budget that the call's address has for an
// operation that needs no key. It comes before the request's form: who sends
// nonsense is throttled, too.
func (c *Core) ThrottleVisitor(call *model.Call) error {
	switch call.Operation.Action {
	case model.ActionDeviceAuthorize:
		return c.throttleDevices(call.IP)
	case model.ActionDeviceToken:
		return c.ThrottleAddress(call.IP, rateDeviceToken)
	default:
		return nil
	}
}

// throttleDevices bounds how many device authorizations of an address can wait:
// as many as it may make while one lasts. Behind a proxy on this machine all
// have one address, which may make more.
func (c *Core) throttleDevices(ip string) error {
	err := c.ThrottleAddress(ip, RateDeviceAuthorize)
	if err != nil || IsLoopback(ip) {
		return err
	}
	return c.ThrottleAddress(ip, RateDeviceWaiting)
}

// Throttle draws one request from the budget of who is given.
func (c *Core) Throttle(who string, class model.RateClass) error {
	return c.visitors.Take(who, class, c.Clock())
}

// ThrottleAddress draws one request from the budget of an address, or of the
// network of an IPv6 address.
func (c *Core) ThrottleAddress(ip string, class model.RateClass) error {
	return c.Throttle(model.VisitorOf(ip), class)
}
