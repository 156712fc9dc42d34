package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// relay is a server on loopback that forwards embedded-postgres's requests to the
// repository. embedded-postgres uses http.Get, which takes no context and has no
// timeout, and drops the reason of a failure. The relay has a context and keeps
// the reason.
type relay struct {
	url      string
	upstream string
	server   http.Server
	served   sync.WaitGroup

	mu  sync.Mutex
	err error // what went wrong upstream
}

// newRelay starts a relay to the repository; its requests end with ctx.
func newRelay(ctx context.Context, upstream string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the download: %w", err)
	}
	r := &relay{url: "http://" + l.Addr().String(), upstream: strings.TrimSuffix(upstream, "/")}
	r.server.Handler = r
	r.server.BaseContext = func(net.Listener) context.Context { return ctx }
	r.served.Go(func() { _ = r.server.Serve(l) })
	return r, nil
}

// ServeHTTP forwards one request.
func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.served.Add(1) // while Serve runs, which itself counts as one
	defer r.served.Done()
	if err := r.pass(w, req); err != nil {
		r.mu.Lock()
		r.err = errors.Join(r.err, err)
		r.mu.Unlock()
		// Abort: a truncated archive must not be mistaken for a complete one.
		panic(http.ErrAbortHandler)
	}
}

func (r *relay) pass(w http.ResponseWriter, req *http.Request) error {
	get, err := http.NewRequestWithContext(req.Context(), http.MethodGet, r.upstream+req.URL.Path, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: http.DefaultTransport}
	answer, err := client.Do(get)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		w.WriteHeader(http.StatusNotFound)
		// A missing checksum is no mistake; embedded-postgres then proceeds without
		// one.
		if !strings.HasSuffix(req.URL.Path, ".sha256") {
			r.mu.Lock()
			r.err = errors.Join(r.err, fmt.Errorf("%s: %s", get.URL, answer.Status))
			r.mu.Unlock()
		}
		return nil
	}
	if answer.ContentLength >= 0 {
		w.Header().Set("Content-Length", fmt.Sprint(answer.ContentLength))
	}
	_, err = io.Copy(w, answer.Body)
	return err
}

// close ends the relay and returns what went wrong upstream.
func (r *relay) close() error {
	_ = r.server.Close()
	r.served.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
