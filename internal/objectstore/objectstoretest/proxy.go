package objectstoretest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy is an HTTP proxy in front of an S3 server that injects faults. Without any it
// forwards everything.
type Proxy struct {
	URL string // to be used in place of the server's

	target    *url.URL
	transport *http.Transport
	done      chan struct{}

	mu       sync.Mutex
	faults   []*Fault
	requests []Request
}

// Fault is what happens to requests that match. The first fault that matches acts.
type Fault struct {
	Method string // empty for every one
	Path   string // a part of the path and query, empty for every one
	Skip   int    // how many matching requests pass before
	Times  int    // how many are hit, 0 for all from then on
	Act    Act

	hits int
}

// Act deals with a request in place of forwarding it.
type Act func(x *Exchange)

// Request is one that arrived at the proxy.
type Request struct {
	Method string
	Path   string // with the query
	Header http.Header
}

// Exchange is a request under way.
type Exchange struct {
	proxy *Proxy
	w     http.ResponseWriter
	r     *http.Request
}

// NewProxy starts a proxy in front of the server at target. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: u, transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}, done: make(chan struct{})}
	server := httptest.NewServer(p)
	p.URL = server.URL
	t.Cleanup(func() {
		close(p.done)
		server.CloseClientConnections()
		server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// Inject adds faults.
func (p *Proxy) Inject(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range faults {
		p.faults = append(p.faults, &f)
	}
}

// Clear removes all faults. What a fault holds up goes on until its request ends.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Requests returns the requests since the last call.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.requests
	p.requests = nil
	return got
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{p, w, r}
	if act := p.match(r); act != nil {
		act(x)
		return
	}
	x.Forward()
}

// match notes a request and returns what happens to it, nil for nothing.
func (p *Proxy) match(r *http.Request) Act {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := r.URL.RequestURI()
	p.requests = append(p.requests, Request{r.Method, path, r.Header.Clone()})
	for _, f := range p.faults {
		if (f.Method != "" && f.Method != r.Method) || !strings.Contains(path, f.Path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 && f.hits == f.Times {
			continue
		}
		f.hits++
		return f.Act
	}
	return nil
}

// Request returns the request. Its body can be read once.
func (x *Exchange) Request() *http.Request { return x.r }

// Forward sends the request to the server and its answer to the client.
func (x *Exchange) Forward() {
	res, err := x.send()
	if err != nil {
		x.Reset()
		return
	}
	defer res.Body.Close()
	x.head(res)
	_, _ = io.Copy(x.w, res.Body)
}

// send sends the request to the server.
func (x *Exchange) send() (*http.Response, error) {
	out := x.r.Clone(x.r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = x.proxy.target.Scheme, x.proxy.target.Host
	out.Host = x.r.Host // it is signed
	if out.ContentLength == 0 {
		out.Body = nil
	}
	return x.proxy.transport.RoundTrip(out)
}

// head sends the status and header of an answer.
func (x *Exchange) head(res *http.Response) {
	for name, values := range res.Header {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(res.StatusCode)
}

// Reset breaks the connection to the client.
func (x *Exchange) Reset() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// wait lets time pass. It returns false when the request or the proxy ends before.
func (x *Exchange) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-x.r.Context().Done():
	case <-x.proxy.done:
	}
	return false
}

var errEnded = errors.New("the request has ended")
