package access

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestFloodOfDeviceAuthorizations fills the table from a few addresses. Another address
// still gets an authorization, and a pending one from before is not lost.
func TestFloodOfDeviceAuthorizations(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	before := c.ask(model.PresetReadOnly)
	c.fillDevices(func(n int) string { return fmt.Sprintf("2001:db8:0:%x::%x", n%25, n) })
	for range 2 * evictedDevices {
		call := c.visitor(model.ActionDeviceAuthorize)
		call.IP = "203.0.113.1"
		codes, err := c.DeviceAuthorize(call, DeviceRequest{ClientName: "honest"})
		if err != nil {
			t.Fatal(err)
		}
		c.wantPoll(codes.Device, model.CodeAuthorizationPending)
	}
	if err := c.approve(p, before.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Errorf("one that waited before: %v", err)
	}
	if _, err := c.poll(before.Device); err != nil {
		t.Errorf("it is collected: %v", err)
	}
	if got := c.devices(); got > maxPendingDevices {
		t.Errorf("%d are kept, more than %d", got, maxPendingDevices)
	}
}

// fillDevices stores the maximum number of authorizations, from the given addresses.
func (c *console) fillDevices(address func(n int) string) {
	c.t.Helper()
	if err := c.core.Meta.Update(func(tx *meta.Tx) error {
		for n := tx.Devices().Count(); n < maxPendingDevices; n++ {
			hash := binary.BigEndian.AppendUint32(nil, uint32(n))
			if err := tx.Devices().Insert(model.DeviceAuthorization{
				ID: c.core.NewID(model.ResourceDevice), DeviceHash: hash, UserHash: hash, Preset: model.PresetReadOnly, IP: address(n),
				CreatedAt: c.core.Clock(), ExpiresAt: c.core.Clock().Add(model.DeviceLife), Status: model.DevicePending,
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) devices() (n int) {
	c.t.Helper()
	if err := c.core.Meta.View(func(tx *meta.Tx) error {
		n = tx.Devices().Count()
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// TestOneAddressDoesNotFillTheTable: however it spreads them, an address has far fewer
// authorizations than the table may hold; the same applies to a proxy.
func TestOneAddressDoesNotFillTheTable(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	made := func(ip string) (n int) {
		for start := c.core.Clock(); c.core.Clock().Sub(start) < model.DeviceLife-time.Second; c.wait(time.Second) {
			call := c.visitor(model.ActionDeviceAuthorize)
			call.IP = ip
			if c.core.ThrottleVisitor(call) == nil {
				n++
			}
		}
		return n
	}
	if got := made("2001:db8::1"); got == 0 || got > maxPendingDevices/50 {
		t.Errorf("one network has %d", got)
	}
	if got := made("127.0.0.1"); got == 0 || got > maxPendingDevices/10 {
		t.Errorf("a proxy's clients have %d", got)
	}
}

// TestGuessesAtUserCodes: a person who starts a new session every few guesses gets no more
// of them, and does not prevent others from approving.
func TestGuessesAtUserCodes(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	guesser, other := c.person("eve@example.com", model.RoleViewer), c.person("ada@example.com", model.RoleOwner)
	limit, guesses := core.VisitorRates()[core.RateUserCode].Limit, 0
	for range 2 * limit {
		// Like a person who signs in again before each guess.
		guesser = c.who(c.session(guesser.User))
		_, err := c.DeviceReview(c.by(guesser, model.ActionDeviceReview), guesser, "BCDF-GHJK")
		switch model.CodeOf(err) {
		case model.CodeNotFound:
			guesses++
		case model.CodeRateLimited:
		default:
			t.Fatal(err)
		}
	}
	if guesses != limit {
		t.Errorf("%d guesses, want %d", guesses, limit)
	}
	codes := c.ask(model.PresetReadOnly)
	if _, err := c.DeviceReview(c.by(guesser, model.ActionDeviceReview), guesser, codes.User); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("a right guess after too many: %v", err)
	}
	if err := c.approve(other, codes.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Errorf("another person: %v", err)
	}
}

// session starts a session without a password.
func (c *console) session(user model.User) model.Secret {
	c.t.Helper()
	token, err := c.beginSession(c.visitor(model.ActionSessionCreate), c.user(user.Email), model.Secret{}, func(*meta.Tx) error { return nil })
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}
