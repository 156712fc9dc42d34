package cli_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestDevicePage approves and denies tools in the browser.
func TestDevicePage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	b := m.browse(t)
	b.setUp(m)

	b.part(t, "approve", func(t *testing.T) { deviceApprove(t, m, b) })
	b.part(t, "deny", func(t *testing.T) { deviceDeny(t, m, b) })
	b.part(t, "keyboard", func(t *testing.T) { deviceKeyboard(t, m, b) })
	b.part(t, "without JavaScript", func(t *testing.T) { deviceWithoutScript(t, m, b) })
	b.part(t, "viewer", func(t *testing.T) { deviceViewer(t, m) })
	b.part(t, "signed out", func(t *testing.T) { deviceSignedOut(t, m) })
	b.part(t, "expiry", func(t *testing.T) { deviceExpiry(t, m, b) })
	b.part(t, "wrong codes", func(t *testing.T) { deviceWrongCodes(t, m, b) })
}

func deviceApprove(t *testing.T, m *machine, b *browser) {
	d := m.authorize("Chart Maker 3", "full_access")
	if _, code := m.poll(d); code != "authorization_pending" {
		t.Errorf("before anything: %s", code)
	}
	b.open(d.URI)
	b.see("Chart Maker 3")
	b.see(d.UserCode)
	b.see("who may connect, delete")
	b.shot("device")
	if _, code := m.poll(d); code == "" {
		t.Error("opening the link has approved it")
	}
	b.click(`[name=preset][value=developer]`)
	if strings.Contains(b.text(), "who may connect, delete") {
		t.Error("the smaller preset still shows what the larger one may")
	}
	b.press("Approve")
	b.see("Chart Maker 3 is let in")
	b.shot("device-approved")
	key, code := m.poll(d)
	if code != "" {
		t.Fatalf("after the approval: %s", code)
	}
	defer m.as(key)()
	var status struct {
		Key struct {
			Scopes         []string
			AllowDangerous bool `json:"allow_dangerous"`
		}
	}
	m.must("GET", "/agent/status", nil, &status)
	if len(status.Key.Scopes) != len(model.PresetDeveloper.Scopes()) || status.Key.AllowDangerous {
		t.Errorf("the key may %+v", status.Key)
	}
	if _, code := m.poll(d); code != "expired_token" {
		t.Errorf("the code again: %s", code)
	}
}

func deviceDeny(t *testing.T, m *machine, b *browser) {
	d := m.authorize("", "read_only")
	b.open(d.URI)
	b.see("A tool that gives no name")
	b.press("Deny")
	b.see("is turned away")
	b.shot("device-denied")
	if _, code := m.poll(d); code != "access_denied" {
		t.Errorf("after the denial: %s", code)
	}
}

// deviceKeyboard approves with the keyboard only; the code is typed in lower
// case and without its hyphen.
func deviceKeyboard(t *testing.T, m *machine, b *browser) {
	d := m.authorize("keys only", "full_access")
	b.open("/device")
	b.shot("device-code")
	b.until("put the focus on the code", `document.hasFocus() && document.activeElement.id === 'user_code'`)
	b.run(chromedp.KeyEvent(strings.ToLower(strings.ReplaceAll(d.UserCode, "-", ""))), chromedp.KeyEvent(kb.Enter))
	b.see("keys only")
	focused := `(document.activeElement.name || '') + ':' + (document.activeElement.value || document.activeElement.textContent)`
	tabTo := func(want string) {
		t.Helper()
		for range 40 {
			b.run(chromedp.KeyEvent(kb.Tab))
			if b.value(focused) == want {
				return
			}
		}
		t.Fatalf("the keyboard does not reach %s", want)
	}
	tabTo("preset:full_access")
	b.run(chromedp.KeyEvent(kb.ArrowDown)) // the next smaller one
	if got := b.value(focused); got != "preset:developer" {
		t.Errorf("the arrow leads to %s", got)
	}
	tabTo(":Approve")
	if outline := b.value(`getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
		t.Error("the focus cannot be seen")
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.see("keys only is let in")
	if key, code := m.poll(d); key == "" {
		t.Errorf("after the approval: %s", code)
	}
}

func deviceWithoutScript(t *testing.T, m *machine, b *browser) {
	d := m.authorize("plain", "full_access")
	b.scripts(false)
	defer b.scripts(true)
	b.open("/device")
	b.fill("#user_code", strings.ReplaceAll(d.UserCode, "-", " "))
	b.press("Continue")
	b.run(chromedp.WaitVisible(chromedp.CSS(`.device .code`)))
	b.click(`[name=allow_dangerous]`)
	b.press("Approve")
	b.run(chromedp.WaitVisible(`//h1[contains(., "is let in")]`))
	if key, code := m.poll(d); key == "" {
		t.Errorf("after the approval: %s", code)
	}
}

// deviceViewer signs in as a viewer, who can only grant read access.
func deviceViewer(t *testing.T, m *machine) {
	const email, password = "bob@example.com", "long enough for bob"
	if _, stderr, code := m.run(password+"\n", "admin", "user", "create", email, "--role", "viewer"); code != 0 {
		t.Fatal(stderr)
	}
	d := m.authorize("greedy", "full_access")
	b := m.browse(t)
	b.open(d.URI)
	b.fill("#email", email)
	b.fill("#password", password)
	b.press("Sign in")
	b.see("may approve Read only alone")
	b.shot("device-viewer")
	if b.is(`document.querySelector('[name=preset]:not([value=read_only])') !== null`) {
		t.Error("a viewer is offered more than reading")
	}
	b.press("Approve")
	b.see("greedy is let in")
	key, code := m.poll(d)
	if code != "" {
		t.Fatalf("after the approval: %s", code)
	}
	defer m.as(key)()
	if status, e := m.do("POST", "/buckets", map[string]any{"project": "proj_1", "name": "files"}); status != http.StatusForbidden {
		t.Errorf("what a viewer approved may write: %d %+v", status, e)
	}
}

// deviceSignedOut follows the link first and then signs in.
func deviceSignedOut(t *testing.T, m *machine) {
	d := m.authorize("patient", "read_only")
	b := m.browse(t)
	b.open(d.URI)
	b.fill("#email", ownerEmail)
	b.fill("#password", ownerPassword)
	b.press("Sign in")
	b.see("patient")
	b.see(d.UserCode)
}

// deviceExpiry lets an authorization expire by changing the metadata between
// two runs of the appliance.
func deviceExpiry(t *testing.T, m *machine, b *browser) {
	d, waiting := m.authorize("too late", "read_only"), m.authorize("still there", "read_only")
	m.stop()
	expireDevice(t, m, "too late")
	m.start()
	b.open(d.URI)
	b.see("No tool waits under this code")
	b.shot("device-expired")
	if _, code := m.poll(d); code != "expired_token" {
		t.Errorf("after its time: %s", code)
	}
	b.open(waiting.URI) // the session and the other code have survived
	b.press("Approve")
	b.see("still there is let in")
	m.kill()
	m.start()
	if key, code := m.poll(waiting); key == "" {
		t.Errorf("approved before the appliance was killed: %s", code)
	}
}

func expireDevice(t *testing.T, m *machine, client string) {
	t.Helper()
	db, err := meta.Open(filepath.Join(m.dataDir, "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *meta.Tx) error {
		id := ""
		if err := tx.Devices().All(func(d model.DeviceAuthorization) error {
			if d.ClientName == client {
				id = d.ID
			}
			return nil
		}); err != nil {
			return err
		}
		_, err := tx.Devices().Update(id, func(d *model.DeviceAuthorization) error {
			d.ExpiresAt = time.Now().Add(-time.Second)
			return nil
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func deviceWrongCodes(t *testing.T, m *machine, b *browser) {
	d := m.authorize("guessed", "read_only")
	for range model.MaxWrongCodes {
		b.open("/device?user_code=BBBB-BBBB")
	}
	b.see("Too many wrong codes")
	b.shot("device-locked")
	b.open(d.URI)
	b.see("Too many wrong codes")
	if strings.Contains(b.text(), "guessed") {
		t.Error("the locked page shows what waits")
	}
}

// TestConsoleGuards sends requests that a foreign page could make a browser
// send.
func TestConsoleGuards(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	base := strings.TrimSuffix(m.api, "/v1")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path string, header map[string]string) *http.Response {
		t.Helper()
		request, err := http.NewRequest(method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range header {
			request.Header.Set(name, value)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	if got := ask("POST", "/sign-in", map[string]string{"Sec-Fetch-Site": "cross-site"}); got.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: %s", got.Status)
	}
	if got := ask("POST", "/sign-in", map[string]string{"Origin": "http://elsewhere.example"}); got.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another origin: %s", got.Status)
	}
	page := ask("GET", "/sign-in", nil)
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
		if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	for path, to := range map[string]string{
		"/":                    "/sign-in",
		"/keys":                "/sign-in?next=%2Fkeys",
		"/device?user_code=AB": "/sign-in?next=%2Fdevice%3Fuser_code%3DAB",
	} {
		if got := ask("GET", path, nil); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != to {
			t.Errorf("%s signed out: %s, %s", path, got.Status, got.Header.Get("Location"))
		}
	}
	for _, path := range []string{"/keys", "/databases", "/device/approve", "/sign-out/everywhere"} {
		if got := ask("POST", path, nil); got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/sign-in") {
			t.Errorf("POST %s signed out: %s", path, got.Status)
		}
	}
}

// TestConsoleOverPlainHTTP uses forms over plain HTTP from another machine: the
// browser does not trust such an origin, and sends less about where a form
// comes from.
func TestConsoleOverPlainHTTP(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	b := m.browse(t)
	near := b.base
	b.base = strings.Replace(near, "127.0.0.1", distantHost, 1)
	m.setup = strings.Replace(m.setup, near, b.base, 1)
	b.setUp(m)
	if b.is(`isSecureContext`) {
		t.Error("the browser takes this for its own machine")
	}
	b.press("Sign out")
	b.see("You are signed out")
}
