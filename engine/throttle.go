package engine

import (
	"time"

	"holdfast/engine/model"
)

// What anybody may ask for without a key or a session is limited by the
// address it comes from; guesses at a password by the account, too.
const (
	rateSignInAddress   model.RateClass = "sign_in"
	rateSignInAccount   model.RateClass = "sign_in to this account"
	rateSignInKnown     model.RateClass = "sign_in to this account from here"
	rateSetup           model.RateClass = "setup"
	rateDeviceAuthorize model.RateClass = "device_authorize"
	rateDeviceWaiting   model.RateClass = "device_authorize that may still wait"
	rateDeviceToken     model.RateClass = "device_token"
	rateUserCode        model.RateClass = "codes of tools"
)

// visitorRates are those limits. A client polls for its key twelve times a
// minute; an office behind one address has several.
func visitorRates() map[model.RateClass]Rate {
	return map[model.RateClass]Rate{
		rateSignInAddress:   {30, time.Minute},
		rateSignInAccount:   {10, 5 * time.Minute},
		rateSignInKnown:     {10, 5 * time.Minute},
		rateSetup:           {30, time.Minute},
		rateDeviceAuthorize: {30, time.Minute},
		rateDeviceWaiting:   {100, model.DeviceLife},
		rateDeviceToken:     {300, time.Minute},
		rateUserCode:        {60, model.DeviceLife},
	}
}

// ThrottleVisitor draws on the budget that the call's address has for an
// operation that needs no key. It comes before the request's form: who sends
// nonsense is throttled, too.
func (e *Engine) ThrottleVisitor(call *model.Call) error {
	switch call.Operation.Action {
	case model.ActionDeviceAuthorize:
		return e.throttleDevices(call.IP)
	case model.ActionDeviceToken:
		return e.throttleAddress(call.IP, rateDeviceToken)
	default:
		return nil
	}
}

// throttleDevices bounds how many device authorizations of an address can wait:
// as many as it may make while one lasts. Behind a proxy on this machine all
// have one address, which may make more.
func (e *Engine) throttleDevices(ip string) error {
	err := e.throttleAddress(ip, rateDeviceAuthorize)
	if err != nil || isLoopback(ip) {
		return err
	}
	return e.throttleAddress(ip, rateDeviceWaiting)
}

// throttle draws one request from the budget of who is given.
func (e *Engine) throttle(who string, class model.RateClass) error {
	return e.visitors.take(who, class, e.clock())
}

// throttleAddress draws one request from the budget of an address, or of the
// network of an IPv6 address.
func (e *Engine) throttleAddress(ip string, class model.RateClass) error {
	return e.throttle(model.VisitorOf(ip), class)
}
