package access

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

const floodPassword = "correct horse battery"

func (c *console) from(ip string, browser model.Secret) *model.Call {
	call := c.visitor(model.ActionSessionCreate)
	call.IP, call.Browser = ip, browser
	return call
}

func (c *console) tryFrom(ip string, browser model.Secret, email, password string) error {
	_, err := c.SignIn(c.from(ip, browser), email, model.NewSecret(password), model.Secret{})
	return err
}

// TestUnknownClientsDoNotLockOwnersOut: wrong passwords block an account's sign-in for
// unknown clients, but not for a browser or address that has signed in before.
func TestUnknownClientsDoNotLockOwnersOut(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner) // signed in at 192.0.2.1
	c.person("bob@example.com", model.RoleViewer)
	browser := c.BrowserToken(p.User.ID)
	for n := range 2 * core.VisitorRates()[core.RateSignInAccount].Limit {
		_ = c.tryFrom(fmt.Sprintf("198.51.100.%d", n), model.Secret{}, "ada@example.com", "a guess")
	}
	if err := c.tryFrom("203.0.113.1", model.Secret{}, "ada@example.com", floodPassword); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("unknown clients may guess on: %v", err)
	}
	if err := c.tryFrom("203.0.113.1", browser, "ada@example.com", floodPassword); err != nil {
		t.Errorf("the owner's browser, from elsewhere: %v", err)
	}
	if err := c.tryFrom("192.0.2.1", model.Secret{}, "ada@example.com", floodPassword); err != nil {
		t.Errorf("another browser at the owner's address: %v", err)
	}
	// Evidence for one account does not count for another, and forged evidence does not count.
	others := c.BrowserToken(c.user("bob@example.com").ID)
	for name, token := range map[string]model.Secret{
		"another's": others, "forged": model.NewSecret("00.AA"), "cut": model.NewSecret(browser.Reveal()[:40]), "empty": {},
	} {
		if err := c.tryFrom("203.0.113.2", token, "ada@example.com", floodPassword); model.CodeOf(err) != model.CodeRateLimited {
			t.Errorf("a browser with %s token: %v", name, err)
		}
	}
}

// TestAddressOfAProxyMakesNoClientKnown: a proxy on this machine gives all clients one
// address. A session from there does not make unknown clients known to its account, with
// a budget and queue of their own, nor reveal that the account exists.
func TestAddressOfAProxyMakesNoClientKnown(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1"} {
		c := openConsole(t)
		c.person("ada@example.com", model.RoleOwner)
		c.wait(time.Hour) // the budgets are unused again
		browser := c.BrowserToken(c.user("ada@example.com").ID)
		if err := c.tryFrom(ip, browser, "ada@example.com", floodPassword); err != nil {
			t.Fatal(err)
		}
		for n := range core.VisitorRates()[core.RateSignInAccount].Limit + 1 {
			there, absent := c.tryFrom(ip, model.Secret{}, "ada@example.com", "a guess"), c.tryFrom(ip, model.Secret{}, "eve@example.com", "a guess")
			if model.CodeOf(there) != model.CodeOf(absent) || model.PublicMessage(there) != model.PublicMessage(absent) {
				t.Fatalf("from %s, attempt %d: %v, %v", ip, n, there, absent)
			}
		}
		if err := c.tryFrom(ip, browser, "ada@example.com", floodPassword); err != nil {
			t.Errorf("the owner's browser, from %s: %v", ip, err)
		}
	}
}

// TestKnownBrowserMayNotGuessOn: a client with the stolen token of a known browser has as
// many guesses as an unknown client.
func TestKnownBrowserMayNotGuessOn(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	browser := c.BrowserToken(p.User.ID)
	for n := range core.VisitorRates()[core.RateSignInKnown].Limit {
		if err := c.tryFrom(fmt.Sprintf("198.51.100.%d", n), browser, "ada@example.com", "a guess"); model.CodeOf(err) != model.CodeUnauthorized {
			t.Fatalf("guess %d: %v", n, err)
		}
	}
	if err := c.tryFrom("198.51.100.200", browser, "ada@example.com", floodPassword); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("more guesses: %v", err)
	}
	c.wait(core.VisitorRates()[core.RateSignInKnown].Window)
	if err := c.tryFrom("198.51.100.200", browser, "ada@example.com", floodPassword); err != nil {
		t.Errorf("later: %v", err)
	}
}

func (c *console) user(email string) model.User {
	c.t.Helper()
	user, err := c.userByEmail(email)
	if err != nil {
		c.t.Fatal(err)
	}
	return user
}

// TestFloodOfSignIns has unknown clients at many addresses sign in at once while all hashing
// is blocked. No more than the maximum wait, each address has at most its share, the rest
// are refused immediately, and a person with a known browser is served before any of them.
func TestFloodOfSignIns(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	release := c.holdHashes(unknownHashes)
	const addresses, each = 12, 25
	var wg sync.WaitGroup
	ended := make(chan error, addresses*each)
	for a := range addresses {
		for n := range each {
			wg.Go(func() {
				ended <- c.tryFrom(fmt.Sprintf("198.51.100.%d", a), model.Secret{}, fmt.Sprintf("nobody%d@example.com", a*each+n), "a guess")
			})
		}
	}
	waiting := addresses * signInsPerClient
	for range addresses*each - waiting {
		if err := <-ended; model.CodeOf(err) != model.CodeRateLimited {
			t.Fatalf("while nothing is hashed: %v", err)
		} else if e := err.(*model.Error); e.RetryAfter <= 0 {
			t.Fatalf("it is not said when to try again: %v", err)
		}
	}
	if got := signInsUnderWay(c.passwords.unknown); got != waiting || waiting > unknownSignIns {
		t.Errorf("%d sign-ins of unknown clients are under way, want %d", got, waiting)
	}
	if err := c.tryFrom("203.0.113.1", c.BrowserToken(p.User.ID), "ada@example.com", floodPassword); err != nil {
		t.Errorf("a known browser meanwhile: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("an unknown client was served before: %v", err)
	default:
	}
	release()
	wg.Wait()
	for range waiting {
		if err := <-ended; model.CodeOf(err) != model.CodeUnauthorized {
			t.Errorf("one who waited: %v", err)
		}
	}
	if err := c.tryFrom("203.0.113.1", model.Secret{}, "ada@example.com", floodPassword); err != nil {
		t.Errorf("an unknown client with the right password, afterwards: %v", err)
	}
}

// TestManyAddressesDoNotFillTheQueue: the total is bounded too.
func TestManyAddressesDoNotFillTheQueue(t *testing.T) {
	t.Parallel()
	q := newPasswordQueue(unknownSignIns)
	for n := range unknownSignIns {
		if _, err := q.enter(fmt.Sprint(n), signInsPerClient); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.enter("another", signInsPerClient); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
}

// holdHashes takes n of the slots for unknown clients until released.
func (c *console) holdHashes(n int) (release func()) {
	slots := c.passwords.unknown.slots[0]
	for range n {
		slots <- struct{}{}
	}
	return func() {
		for range n {
			<-slots
		}
	}
}

func signInsUnderWay(q *passwordQueue) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// TestAccountsDoNotShowByThrottles: unknown clients are throttled equally whether or not the
// account exists.
func TestAccountsDoNotShowByThrottles(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	c.wait(time.Hour)
	for n := range 2 * core.VisitorRates()[core.RateSignInAccount].Limit {
		ip := fmt.Sprintf("198.51.100.%d", n)
		there, absent := c.tryFrom(ip, model.Secret{}, "ada@example.com", "a guess"), c.tryFrom(ip, model.Secret{}, "eve@example.com", "a guess")
		if model.CodeOf(there) != model.CodeOf(absent) || model.PublicMessage(there) != model.PublicMessage(absent) {
			t.Fatalf("attempt %d: %v, %v", n, there, absent)
		}
	}
}
