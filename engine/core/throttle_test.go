package core

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/engine/model"
)

func deviceCall(ip string) *model.Call {
	return &model.Call{Operation: model.Operation{Action: model.ActionDeviceAuthorize}, IP: ip}
}

// TestThrottleTakesANetworkForOneVisitor: the owner of one IPv6 address has 2^64 of them.
func TestThrottleTakesANetworkForOneVisitor(t *testing.T) {
	t.Parallel()
	c := &Core{Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }, visitors: newRateLimiter(VisitorRates())}
	from := func(address string) error { return c.ThrottleVisitor(deviceCall(address)) }
	var err error
	for n := range VisitorRates()[rateDeviceAuthorize].Limit + 1 {
		err = from(fmt.Sprintf("2001:db8:0:1::%x", n))
	}
	if model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("one network may ask without end: %v", err)
	}
	for _, other := range []string{"2001:db8:0:2::1", "192.0.2.1", "::ffff:192.0.2.2", "fe80::1%eth0", ""} {
		if err := from(other); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// TestOneAddressMakesFewDeviceAuthorizations: however it spreads its requests, an address
// has a limited number of pending authorizations; a proxy's may have more.
func TestOneAddressMakesFewDeviceAuthorizations(t *testing.T) {
	t.Parallel()
	made := func(ip string) (n int) {
		start := time.Unix(1_800_000_000, 0)
		now := start
		c := &Core{Clock: func() time.Time { return now }, visitors: newRateLimiter(VisitorRates())}
		for ; now.Sub(start) < model.DeviceLife-time.Second; now = now.Add(time.Second) {
			if c.ThrottleVisitor(deviceCall(ip)) == nil {
				n++
			}
		}
		return n
	}
	limit := VisitorRates()[rateDeviceWaiting].Limit
	if got := made("2001:db8::1"); got != limit {
		t.Errorf("one network has %d", got)
	}
	if got := made("127.0.0.1"); got <= limit {
		t.Errorf("a proxy's clients have %d", got)
	}
}

// TestDownloadsOfAnAddressAreLimited: reads without a key and preflights cost the appliance something, and nobody
// answers for them.
func TestDownloadsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	c := &Core{Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }, visitors: newRateLimiter(VisitorRates())}
	from := func(ip string) error {
		return c.ThrottleVisitor(&model.Call{Operation: model.Operation{Action: model.ActionObjectDownload}, IP: ip})
	}
	for range VisitorRates()[rateDownload].Limit {
		if err := errors.Join(from("192.0.2.1"), from("127.0.0.1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := from("192.0.2.1"); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("one address may read without end: %v", err)
	}
	if err := errors.Join(from("192.0.2.2"), from("127.0.0.1")); err != nil {
		t.Error(err)
	}
}
