package core

import (
	"time"

	"holdfast/engine/model"
)

// Budgets of requests that need no key and no session, per client address; those of
// password guesses are also per account.
const (
	RateSignInAddress   model.RateClass = "sign_in"
	RateSignInAccount   model.RateClass = "sign_in to this account"
	RateSignInKnown     model.RateClass = "sign_in to this account from here"
	RateSetup           model.RateClass = "setup"
	rateDeviceAuthorize model.RateClass = "device_authorize"
	rateDeviceWaiting   model.RateClass = "device_authorize that may still wait"
	rateDeviceToken     model.RateClass = "device_token"
	RateUserCode        model.RateClass = "codes of tools"
	rateDownload        model.RateClass = "downloads without a key"
	ratePageUpload      model.RateClass = "uploads by links and forms"
)

// VisitorRates returns the limits on requests without a key. A client polls for its key
// twelve times a minute, and an office behind one address has several clients. Downloads
// of public buckets and by links, the preflights before them, and uploads by links and HTML forms
// are the requests of pages. So are those by presigned URLs: they count as downloads, or if they change
// something as uploads.
func VisitorRates() map[model.RateClass]Rate {
	return map[model.RateClass]Rate{
		RateSignInAddress:   {30, time.Minute},
		RateSignInAccount:   {10, 5 * time.Minute},
		RateSignInKnown:     {10, 5 * time.Minute},
		RateSetup:           {30, time.Minute},
		rateDeviceAuthorize: {30, time.Minute},
		rateDeviceWaiting:   {100, model.DeviceLife},
		rateDeviceToken:     {300, time.Minute},
		RateUserCode:        {60, model.DeviceLife},
		rateDownload:        {6000, time.Minute},
		ratePageUpload:      {6000, time.Minute},
	}
}

// ThrottleVisitor draws on the budget of the call's address for an operation that
// needs no key. It runs before the request is parsed, so that malformed requests are
// throttled too.
func (c *Core) ThrottleVisitor(call *model.Call) error {
	switch call.Operation.Action {
	case model.ActionDeviceAuthorize:
		err := c.throttleDevices(call.IP)
		call.Budgets = c.visitors.State(model.VisitorOf(call.IP), []model.RateClass{rateDeviceAuthorize}, c.Clock())
		return err
	case model.ActionDeviceToken:
		err := c.ThrottleAddress(call.IP, rateDeviceToken)
		call.Budgets = c.visitors.State(model.VisitorOf(call.IP), []model.RateClass{rateDeviceToken}, c.Clock())
		return err
	case model.ActionObjectDownload, model.ActionObjectList:
		return c.throttlePage(call.IP, rateDownload)
	default:
		return nil
	}
}

// ThrottlePreflight draws on the budget of the call's address for downloads.
func (c *Core) ThrottlePreflight(call *model.Call) error {
	return c.throttlePage(call.IP, rateDownload)
}

// throttlePage limits the requests that an address's pages make. The loopback address is exempt, because all clients of
// a proxy on this machine share it.
func (c *Core) throttlePage(ip string, class model.RateClass) error {
	if IsLoopback(ip) {
		return nil
	}
	return c.ThrottleAddress(ip, class)
}

// throttleDevices limits how many device authorizations of an address can be pending:
// as many as it may start during the lifetime of one. The loopback address is exempt,
// because all clients of a proxy on this machine share it.
func (c *Core) throttleDevices(ip string) error {
	err := c.ThrottleAddress(ip, rateDeviceAuthorize)
	if err != nil || IsLoopback(ip) {
		return err
	}
	return c.ThrottleAddress(ip, rateDeviceWaiting)
}

// Throttle draws one request from the owner's budget.
func (c *Core) Throttle(owner string, class model.RateClass) error {
	return c.visitors.take(owner, class, c.Clock())
}

// ThrottleAddress draws one request from the budget of an IPv4 address or of an IPv6
// address's network.
func (c *Core) ThrottleAddress(ip string, class model.RateClass) error {
	return c.Throttle(model.VisitorOf(ip), class)
}
