package web

import (
	"embed"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"holdfast/engine"
	"holdfast/engine/model"
)

//go:embed templates assets
var files embed.FS

// Options of the pages.
type Options struct {
	// BaseURL is how the pages are reached, without a slash at its end.
	BaseURL string
	// ObjectsURL is what the URLs of objects begin with, "" where they are
	// downloaded from where the pages are.
	ObjectsURL string
	// StatusOf gives the HTTP status of an error's code.
	StatusOf func(model.Code) int
	// Description is the API's, an OpenAPI document.
	Description []byte
	Log         *slog.Logger
}

// pages serves the console.
type pages struct {
	engine    *engine.Engine
	opts      Options
	base      *url.URL // of BaseURL
	templates templates
	assets    assets
	docs      reference
}

// New returns the handler of every page.
func New(e *engine.Engine, opts Options) (http.Handler, error) {
	base, err := url.Parse(opts.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	p := &pages{engine: e, opts: opts, base: base}
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if p.templates, err = loadTemplates(p.assets); err != nil {
		return nil, err
	}
	if p.docs, err = newReference(opts.Description, opts.BaseURL); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{name}", p.assets)
	for _, r := range openRoutes() {
		mux.Handle(r.pattern, p.open(r))
	}
	for _, r := range routes() {
		mux.Handle(r.pattern, p.signedIn(r))
	}
	mux.Handle("/", p.open(openRoute{"/", "", (*visit).notFound}))
	origins := http.NewCrossOriginProtection()
	// Behind a proxy the host asked for may be another than the browser's.
	if err := origins.AddTrustedOrigin(opts.BaseURL); err != nil {
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	return p.guard(origins.Handler(mux)), nil
}

// policy lets a page load what the appliance itself serves, as files: nothing
// from elsewhere, and no script or style in the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guard sets the headers every page has, and refuses names that somebody else
// may have pointed at this machine (DNS rebinding).
func (p *pages) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // for browsers older than frame-ancestors
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !p.knownHost(r.Host) {
			http.Error(w, "This name does not belong to the appliance. Use "+p.opts.BaseURL, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *pages) knownHost(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return host == p.base.Hostname()
}
