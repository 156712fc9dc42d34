package cli_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// distantHost is an address that the browser treats as another machine's; it is
// this one.
const distantHost = "192.0.2.1"

// chromium is the one browser of all tests; each test has its own profile in
// it.
type chromium struct {
	once    sync.Once
	ctx     context.Context
	missing bool
	err     error
	stop    []func()
}

var theBrowser chromium

func (c *chromium) start(dir string) {
	path, err := lookBrowser()
	if err != nil {
		c.missing = true
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(dir, "chromium")),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Env("LC_ALL=C.UTF-8"), // without a UTF-8 locale it cannot find files with non-ASCII names
		chromedp.Flag("host-resolver-rules", "MAP "+distantHost+" 127.0.0.1"), chromedp.WSURLReadTimeout(time.Minute),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopBrowser := chromedp.NewContext(allocator)
	c.stop = []func(){stopBrowser, stopAllocator}
	c.ctx, c.err = ctx, chromedp.Do(ctx)
}

func (c *chromium) close() {
	for _, stop := range c.stop {
		stop()
	}
}

// lookBrowser finds Chromium. One without the browser's own windows takes half the time.
func lookBrowser() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// patience is how long a page may take on a busy machine.
const patience = 45 * time.Second

// browser is a user's window on a machine's console.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	problems []string
	origins  []string // that pages may ask besides base
}

// allow lets the pages use another origin.
func (b *browser) allow(origin string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.origins = append(b.origins, origin)
}

// mayAsk reports whether pages may use the origin of a URL.
func (b *browser) mayAsk(u *url.URL) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	origin := u.Scheme + "://" + u.Host
	return u.Scheme == "data" || origin == b.base || slices.Contains(b.origins, origin)
}

// browse opens a window with its own profile. At the end of the test it must
// not have contacted another host or logged an error.
func (m *machine) browse(t *testing.T) *browser {
	t.Helper()
	theBrowser.once.Do(func() { theBrowser.start(filepath.Dir(program)) })
	switch {
	case theBrowser.missing && os.Getenv("CI") == "":
		t.Skip("there is no Chromium here; apt-get install chromium-headless-shell brings it")
	case theBrowser.missing:
		t.Fatal("there is no Chromium here")
	case theBrowser.err != nil:
		t.Fatalf("start Chromium: %v", theBrowser.err)
	}
	ctx, closeWindow := chromedp.NewContext(theBrowser.ctx, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	b := &browser{t: t, ctx: ctx, base: strings.TrimSuffix(m.api, "/v1")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page at the end:\n%s", b.text())
		}
		cancel()
		closeWindow()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			t.Error(problem)
		}
	})
	if err := chromedp.Listen(ctx, b.watch); err != nil { // this also opens the window, until ctx ends
		t.Fatal(err)
	}
	b.run(chromedp.EmulateViewport(1280, 900))
	return b
}

// part runs a subtest in the window.
func (b *browser) part(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		whole := b.t
		defer func() { b.t = whole }()
		b.t = t
		test(t)
	})
}

// watch records what must not happen in any page.
func (b *browser) watch(event any) {
	problem := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || !b.mayAsk(u) {
			problem = "asked another host: " + e.Request.URL
		}
	case *runtime.EventExceptionThrown:
		problem = "a script failed: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("a script wrote to the console: %s", e.Type)
	case *log.EventEntryAdded: // includes refused forms, as failed loads, and the note that this header is for HTTPS
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork &&
			!strings.HasPrefix(e.Entry.Text, "The Cross-Origin-Opener-Policy header has been ignored") {
			problem = "the browser complained: " + e.Entry.Text
		}
	case *network.EventLoadingFailed:
		if e.BlockedReason != "" {
			problem = "blocked: " + string(e.BlockedReason)
		}
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

// forget returns and clears what was recorded.
func (b *browser) forget() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	problems := b.problems
	b.problems = nil
	return problems
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page says:\n%s", err, b.text())
	}
}

// open goes to a path of the console, or to a whole URL.
func (b *browser) open(path string) {
	b.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = b.base + path
	}
	b.run(chromedp.Navigate(path))
}

// text returns the page's text.
func (b *browser) text() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ''`))
	if err != nil {
		return err.Error()
	}
	return text
}

// see waits until the page contains text.
func (b *browser) see(text string) {
	b.t.Helper()
	b.until("see "+text, fmt.Sprintf(`document.readyState === 'complete' && document.body.innerText.includes(%q)`, text))
}

// until waits until a JavaScript expression is true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if b.is(expression) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("%s: not at %s:\n%s", what, b.location(), b.text())
}

// is reports whether an expression is true. It returns false while the browser
// changes pages, when it may not answer.
func (b *browser) is(expression string) bool {
	ctx, cancel := context.WithTimeout(b.ctx, 3*time.Second)
	defer cancel()
	is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
	return err == nil && is
}

func (b *browser) location() string {
	b.t.Helper()
	return b.value(`location.href`)
}

// fill types into a field, replacing its content.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(chromedp.CSS(selector)))
	b.value(fmt.Sprintf(`document.querySelector(%q).value = ''`, selector))
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// press clicks the button or link with a text.
func (b *browser) press(text string) {
	b.t.Helper()
	b.run(chromedp.Click(fmt.Sprintf(`//*[self::button or self::a or self::summary][normalize-space()=%q]`, text)))
}

// click clicks the first element that matches a CSS selector.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

// value evaluates a JavaScript expression.
func (b *browser) value(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// copied returns what the i-th copy button copies.
func (b *browser) copied(i int) string {
	b.t.Helper()
	return b.value(fmt.Sprintf(`document.querySelectorAll('[data-copy]')[%d].dataset.copy`, i))
}

// soundness finds what is wrong with a page for people who cannot see it well
// or have little room.
//
//go:embed testdata/sound.js
var soundness string

// shot checks the current page, light and dark, wide and narrow. If
// HOLDFAST_SCREENSHOTS names a directory, it saves screenshots there.
func (b *browser) shot(name string) {
	b.t.Helper()
	b.until("load", `document.readyState === 'complete'`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			b.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
			}})
			b.run(chromedp.EmulateViewport(width, 900))
			if complaints := b.value(soundness); complaints != "" {
				b.t.Errorf("%s, %s at %d px:\n%s", name, scheme, width, complaints)
			}
			b.picture(fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
		}
	}
	b.emulate(emulation.SetEmulatedMediaParams{})
	b.run(chromedp.EmulateViewport(1280, 900))
}

func (b *browser) picture(file string) {
	b.t.Helper()
	dir := os.Getenv("HOLDFAST_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, file), picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) emulate(media emulation.SetEmulatedMediaParams) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
}

// scripts turns JavaScript on or off.
func (b *browser) scripts(on bool) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}); err != nil {
		b.t.Fatal(err)
	}
}
