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
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/server/operator"
)

const maxHeaderBytes = 64 << 10

// Timeouts bound how long clients may take. A zero field means the default.
type Timeouts struct {
	ReadHeader time.Duration // 10 s: for the head of a request
	// Read is for a request with its body, also one that the handler does not
	// read: 30 s. A handler whose request may take longer moves the deadline on
	// while the body keeps coming, or takes it away.
	Read time.Duration
	Idle time.Duration // 2 min: between two requests on a connection
	// Drain is how long requests under way may take once the appliance is to
	// stop: 20 s.
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

// Options of a Server.
type Options struct {
	// BaseURL is how clients reach the listener, without a slash at its end.
	BaseURL string
	// ObjectsURL is what the URLs of objects begin with, "" when they are
	// downloaded where the API is. What people have uploaded is then served to
	// that host alone, and nothing else is.
	ObjectsURL string
	// StrictTransport is the header Strict-Transport-Security for the host of a
	// BaseURL with https, "" for none.
	StrictTransport string
	// OperatorSocket is the path of the operator's socket.
	OperatorSocket string
	// Leases are the sandboxes held over that socket; Serve ends them.
	Leases *operator.Leases
	// Serving is called once, when everything is listened on.
	Serving func()
	// Metrics are served with the health checks on MetricsListener; both are
	// nil where none are wanted. Serve closes the listener.
	Metrics         http.Handler
	MetricsListener net.Listener
	// Answered is told of every request of the API when it was answered.
	Answered func(operation model.Action, status int, took time.Duration)
	Timeouts Timeouts
	Log      *slog.Logger
}

// Server serves one engine.
type Server struct {
	opts    Options
	public  *http.Server
	objects *http.Server
	admin   *http.Server
	metrics *http.Server
}

// New puts the handlers together. The engine stays the caller's to close.
func New(e *engine.Engine, opts Options) (*Server, error) {
	handler, err := newHandler(e, opts)
	if err != nil {
		return nil, err
	}
	opts.Timeouts = opts.Timeouts.orDefaults()
	serve := func(h http.Handler) *http.Server { return newHTTPServer(h, opts.Timeouts, opts.Log) }
	s := &Server{
		opts:    opts,
		public:  serve(handler),
		objects: serve(onlyObjects(&downloads{engine: e, log: opts.Log})),
		admin:   serve(operator.Appliance{Engine: e, BaseURL: opts.BaseURL, Leases: opts.Leases}.Handler()),
		metrics: serve(newMetricsHandler(e, opts.Metrics)),
	}
	s.admin.RegisterOnShutdown(opts.Leases.Close)
	return s, nil
}

func newHTTPServer(h http.Handler, t Timeouts, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: t.ReadHeader,
		ReadTimeout:       t.Read,
		IdleTimeout:       t.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         noteState,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve answers on listener, on objects where that is not nil, and on the
// operator's socket, until ctx ends; then it lets the requests under way
// finish. It closes the listeners.
func (s *Server) Serve(ctx context.Context, listener, objects net.Listener) error {
	socket, err := listenOperator(s.opts.OperatorSocket)
	if err != nil {
		err = errors.Join(err, listener.Close())
		if objects != nil {
			err = errors.Join(err, objects.Close())
		}
		return err
	}
	listeners := map[*http.Server]net.Listener{s.public: listener, s.admin: socket, s.objects: objects, s.metrics: s.opts.MetricsListener}
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

// drain stops accepting and waits for the requests under way, on all listeners
// at the same time; those that take too long are cut off.
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

// OperatorSocket is the path of the operator's socket in a socket directory.
func OperatorSocket(socketDir string) string { return filepath.Join(socketDir, "operator.sock") }

// listenOperator takes the operator's socket. The data directory's lock is
// held, so that a socket that is there is a dead appliance's.
func listenOperator(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove stale operator socket: %w", err)
	}
	socket, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on operator socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close operator socket to others: %w", err), socket.Close())
	}
	return socket, nil
}
