package web

import (
	"embed"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

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
	// Known is called for every request with a valid session; it may be nil.
	Known func(r *http.Request)
	Log   *slog.Logger
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
	nothing := p.open(openRoute{"/", "", (*request).notFound, nil})
	mux.Handle("/", nothing)
	origins := http.NewCrossOriginProtection()
	// Behind a proxy the host asked for may be another than the browser's.
	if err := origins.AddTrustedOrigin(originOf(base)); err != nil {
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	origins.SetDenyHandler(http.HandlerFunc(p.fromElsewhere))
	return p.guard(origins.Handler(exact(mux, nothing))), nil
}

// exact lets next have the requests for paths that are as http.ServeMux wants
// them, and nothing the rest: it would redirect to what it makes of those, and a
// DELETE of //v1/buckets/b/objects//key, which a client got by joining two
// slashes, to another object or to the bucket.
func exact(next, nothing http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.EscapedPath()
		clean := path.Clean("/" + given)
		if clean != "/" && strings.HasSuffix(given, "/") {
			clean += "/"
		}
		if given != clean {
			nothing.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// policy lets a page load what the appliance itself serves, as files: nothing
// from elsewhere, and no script or style in the page. The origin may also serve
// objects that anybody uploaded, so the one script is allowed by its content:
// by its hash, which browsers compare with the script's integrity attribute,
// under whatever host and scheme a proxy shows them.
func policy(a assets) string {
	return "default-src 'none'; script-src '" + a.integrity("app.js") + "'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}

// guard sets the headers every page has, and refuses names that somebody else
// may have pointed at this machine (DNS rebinding).
func (p *pages) guard(next http.Handler) http.Handler {
	policy := policy(p.assets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // for browsers older than frame-ancestors
		// Nobody else learns of an address. (With no-referrer browsers would not
		// say where a form comes from either: over plain HTTP none would work.)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !p.knownHost(r.Host) {
			http.Error(w, "This name does not belong to the appliance. Use "+p.opts.BaseURL, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromElsewhere answers a form that no page of the console has sent.
func (p *pages) fromElsewhere(w http.ResponseWriter, r *http.Request) {
	p.begin(w, r, model.Operation{}).fail(answer{}, model.Errorf(model.CodeForbidden,
		"this was not sent by a page of the console: open %s and do it there", p.opts.BaseURL))
}

func (p *pages) knownHost(hostPort string) bool {
	host := hostname(&url.URL{Host: hostPort})
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return host == hostname(p.base)
}

// hostname is a URL's host as browsers write it, without brackets.
func hostname(u *url.URL) string { return strings.ToLower(u.Hostname()) }

// originOf is a URL's origin as browsers write it.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return u.Scheme + "://" + host
}
