package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/server/operator"
	"holdfast/server/s3"
)

const maxHeaderBytes = 64 << 10

// Timeouts bound the time that clients may take. A zero field means the default.
type Timeouts struct {
	ReadHeader time.Duration // 10 s: for the head of a request
	// Read is for a request with its body, even if the handler does not read it: 30 s. A handler whose request may
	// take longer extends the deadline while the body arrives, or removes it.
	Read time.Duration
	Idle time.Duration // 2 min: between two requests on a connection
	// Drain is the maximum time for requests in progress when the appliance is stopping: 20 s.
	Drain time.Duration
}

func (t Timeouts) orDefaults() Timeouts {
	return Timeouts{
		ReadHeader: cmp.Or(t.ReadHeader, 10*time.Second),
		Read:       cmp.Or(t.Read, 30*time.Second),
		Idle:       cmp.Or(t.Idle, 2*time.Minute),
		Drain:      cmp.Or(t.Drain, 20*time.Second),
	}
}

// Options are the options of a Server.
type Options struct {
	// BaseURL is the URL by which clients reach the listener, without a trailing slash.
	BaseURL string
	// ObjectsURL begins the URLs of objects; "" means that they are downloaded from the API's host. If it is set,
	// uploaded content is served only to that host, and nothing else is.
	ObjectsURL string
	// S3URL is the URL by which clients reach the S3 endpoint, "" for none. S3Listener serves it; without one, the
	// API's listener does for the host of S3URL and its subdomains. Serve closes the listener.
	S3URL      string
	S3Listener net.Listener
	// S3WebsiteURL is the URL below whose host the S3 endpoint serves websites, "" for none.
	S3WebsiteURL string
	// StrictTransport is the header Strict-Transport-Security for the host of an https BaseURL, or "".
	StrictTransport string
	// TrustedProxies are the networks of the proxies whose X-Forwarded-For names the client, or Forwarded (RFC 7239)
	// if StandardForwarded is true.
	TrustedProxies    []netip.Prefix
	StandardForwarded bool
	// OperatorSocket is the path of the operator's socket.
	OperatorSocket string
	// Leases are the sandboxes held through that socket; Serve ends them.
	Leases *operator.Leases
	// Serving is called once, when the server listens on everything.
	Serving func()
	// Metrics are served with the health checks on MetricsListener; both may be nil. Serve closes the listener.
	Metrics         http.Handler
	MetricsListener net.Listener
	// Answered is called after the response to every request of the API.
	Answered func(operation model.Action, status int, took time.Duration)
	Timeouts Timeouts
	Log      *slog.Logger
}

// Server serves one engine.
type Server struct {
	opts    Options
	public  *http.Server
	objects *http.Server
	s3      *http.Server
	admin   *http.Server
	metrics *http.Server
}

// New combines the handlers. The caller closes the engine.
func New(e *engine.Engine, opts Options) (*Server, error) {
	handler, err := newHandler(e, opts)
	if err != nil {
		return nil, err
	}
	opts.Timeouts = opts.Timeouts.orDefaults()
	serve := func(h http.Handler) *http.Server { return newHTTPServer(h, opts.Timeouts, opts.Log) }
	proxies := trustedProxies{networks: opts.TrustedProxies, standard: opts.StandardForwarded}
	clients := newCrowd()
	serveAll := func(h http.Handler) *http.Server { return serve(proxies.resolve(clients.admit(h))) }
	s := &Server{
		opts:    opts,
		public:  serveAll(handler),
		objects: serveAll(onlyObjects(newFiles(e, opts))),
		s3:      serveAll(newS3(e, opts)),
		admin:   serve(operator.Appliance{Engine: e, BaseURL: opts.BaseURL, Leases: opts.Leases}.Handler()),
		metrics: serve(newMetricsHandler(e, opts.Metrics)),
	}
	s.admin.RegisterOnShutdown(opts.Leases.Close)
	s.public.RegisterOnShutdown(e.Core.Watchers.End)
	return s, nil
}

func newS3(e *engine.Engine, opts Options) *s3.Server {
	return s3.New(e, s3.Options{URL: opts.S3URL, WebsiteURL: opts.S3WebsiteURL, Log: opts.Log, Answered: opts.Answered, Known: known})
}

func newHTTPServer(h http.Handler, t Timeouts, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           answering(patiently(h)),
		ReadHeaderTimeout: t.ReadHeader,
		ReadTimeout:       t.Read,
		IdleTimeout:       t.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         noteState,
		ConnContext:       withConn,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve serves on listener, on objects if it is not nil, and on the operator's socket, until ctx ends; then it lets
// the requests in progress finish. It closes the listeners.
func (s *Server) Serve(ctx context.Context, listener, objects net.Listener) error {
	socket, err := listenOperator(s.opts.OperatorSocket)
	if err != nil {
		err = errors.Join(err, listener.Close())
		if objects != nil {
			err = errors.Join(err, objects.Close())
		}
		return err
	}
	listeners := map[*http.Server]net.Listener{s.public: listener, s.admin: socket, s.objects: objects, s.metrics: s.opts.MetricsListener, s.s3: s.opts.S3Listener}
	maps.DeleteFunc(listeners, func(_ *http.Server, l net.Listener) bool { return l == nil })
	ended := make(chan error, len(listeners))
	for server, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	s.opts.Serving()
	running := len(listeners)
	select {
	case <-ctx.Done():
	case err = <-ended:
		running--
	}
	err = errors.Join(err, s.drain(slices.Collect(maps.Keys(listeners))))
	for range running {
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// drain stops accepting and waits for the requests in progress, on all listeners at the same time. It cuts off those
// that take too long.
func (s *Server) drain(servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeouts.Drain)
	defer cancel()
	errs := make([]error, len(servers))
	var stopping sync.WaitGroup
	for i, server := range servers {
		stopping.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				s.opts.Log.Warn("requests were cut off", "error", err)
				errs[i] = server.Close()
			}
		})
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// OperatorSocket returns the path of the operator's socket in a socket directory.
func OperatorSocket(socketDir string) string { return filepath.Join(socketDir, "operator.sock") }

// listenOperator listens on the operator's socket. The caller holds the data directory's lock, so an existing socket
// belongs to a dead appliance. It is not removed with the listener: where the data directory was removed meanwhile, the
// path may be the socket of the next appliance.
func listenOperator(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove stale operator socket: %w", err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on operator socket: %w", err)
	}
	socket.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close operator socket to others: %w", err), socket.Close())
	}
	return socket, nil
}
