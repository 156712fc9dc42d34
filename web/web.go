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
	"sync"

	"holdfast/engine"
	"holdfast/engine/model"
)

//go:embed templates assets
var files embed.FS

// Options configure the pages.
type Options struct {
	// BaseURL is the URL of the console, without a trailing slash.
	BaseURL string
	// ObjectsURL is the base URL of object downloads, "" if they share the
	// console's origin.
	ObjectsURL string
	// S3URL is the URL of the S3 endpoint, "" for none.
	S3URL string
	// StatusOf returns the HTTP status of an error.
	StatusOf func(error) int
	// WriteAuditExport writes the audit entries that each passes on as the API does. If it fails and began is false,
	// nothing was written.
	WriteAuditExport func(w http.ResponseWriter, each func(use func([]model.AuditEntry) error) error) (began bool, err error)
	// Description returns the API's OpenAPI document.
	Description func() ([]byte, error)
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
	docs      func() (reference, error)
}

// New returns the handler of all pages.
func New(e *engine.Engine, opts Options) (http.Handler, error) {
	base, err := url.Parse(opts.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	p := &pages{engine: e, opts: opts, base: base}
	p.docs = sync.OnceValues(func() (reference, error) {
		description, err := opts.Description()
		if err != nil {
			return nil, err
		}
		return newReference(description, opts.BaseURL)
	})
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if p.templates, err = loadTemplates(p.assets); err != nil {
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
	// A proxy may change the Host header, so it may differ from the browser's.
	if err := origins.AddTrustedOrigin(originOf(base)); err != nil {
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	origins.SetDenyHandler(http.HandlerFunc(p.fromElsewhere))
	return p.guard(origins.Handler(exact(mux, nothing))), nil
}

// exact passes only requests with a clean path to next, and all others to
// nothing. http.ServeMux would redirect them to the cleaned path: a DELETE of
// //v1/buckets/b/objects//key, from a client that joined two slashes, would
// reach another object or the bucket.
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

// policy allows only files that the appliance itself serves, and no inline
// script or style. The origin may also serve objects that anyone uploaded, so
// the policy allows the one script by its hash. Browsers compare that with the
// script's integrity attribute, whatever host and scheme a proxy presents.
func policy(a assets) string {
	return "default-src 'none'; script-src '" + a.integrity("app.js") + "'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}

// guard sets the headers of every page, and rejects host names that someone
// else may have pointed at this machine (DNS rebinding).
func (p *pages) guard(next http.Handler) http.Handler {
	policy := policy(p.assets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // for browsers older than frame-ancestors
		// Other sites do not learn the URL. With no-referrer, browsers would
		// also withhold a form's origin, and no form would work over plain HTTP.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !p.knownHost(r.Host) {
			http.Error(w, "This name does not belong to the appliance. Use "+p.opts.BaseURL, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromElsewhere rejects a form that was not sent by a page of the console.
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

// hostname returns a URL's host as browsers write it, without brackets.
func hostname(u *url.URL) string { return strings.ToLower(u.Hostname()) }

// originOf returns a URL's origin as browsers write it.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return u.Scheme + "://" + host
}
