package web

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"holdfast/engine"
)

//go:embed templates assets
var files embed.FS

// Options of the pages.
type Options struct {
	// BaseURL is how the pages are reached, without a slash at its end.
	BaseURL string
	Log     *slog.Logger
}

// pages serves the console.
type pages struct {
	engine    *engine.Engine
	opts      Options
	host      string // of BaseURL
	templates *template.Template
	mux       *http.ServeMux
}

// New returns the handler of every page.
func New(e *engine.Engine, opts Options) (http.Handler, error) {
	templates, err := template.ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(opts.BaseURL)
	if err != nil {
		return nil, err
	}
	assets, err := fs.Sub(files, "assets")
	if err != nil {
		return nil, err
	}
	p := &pages{engine: e, opts: opts, host: base.Hostname(), templates: templates, mux: http.NewServeMux()}
	p.mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(assets)))
	p.mux.HandleFunc("GET /{$}", p.home)
	p.mux.HandleFunc("GET "+setupPath, p.setupForm)
	p.mux.HandleFunc("POST "+setupPath, p.setupSubmit)
	p.mux.HandleFunc("/", p.notFound)
	return p.guard(http.NewCrossOriginProtection().Handler(p.mux)), nil
}

// guard sets the headers every page has, and refuses names that somebody else
// may have pointed at this machine (DNS rebinding).
func (p *pages) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
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
	return host == p.host
}

// render writes a page whole or not at all.
func (p *pages) render(w http.ResponseWriter, status int, name string, data any) {
	var page bytes.Buffer
	if err := p.templates.ExecuteTemplate(&page, name, data); err != nil {
		p.opts.Log.Error("render page", "page", name, "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // a reader that is gone needs no page
}

func (p *pages) home(w http.ResponseWriter, _ *http.Request) {
	p.render(w, http.StatusOK, "home.html", p.opts)
}

func (p *pages) notFound(w http.ResponseWriter, _ *http.Request) {
	p.render(w, http.StatusNotFound, "not_found.html", p.opts)
}
