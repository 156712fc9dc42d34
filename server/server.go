package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/server/operator"
)

// Limits of a connection. Bodies have no deadline: a slow upload is fine, it
// holds a goroutine and a file.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// drainTimeout is how long requests under way may take once the appliance
	// is to stop.
	drainTimeout = 20 * time.Second
)

// Options of a Server.
type Options struct {
	// BaseURL is how clients reach the listener, without a slash at its end.
	BaseURL string
	// OperatorSocket is the path of the operator's socket.
	OperatorSocket string
	// Metrics are served with the health checks on MetricsListener; both are
	// nil where none are wanted. Serve closes the listener.
	Metrics         http.Handler
	MetricsListener net.Listener
	// Answered is told of every request of the API when it was answered.
	Answered func(operation model.Action, status int, took time.Duration)
	Log      *slog.Logger
}

// Server serves one engine.
type Server struct {
	opts   Options
	public *http.Server
	admin  *http.Server
	// metrics is nil where none are wanted.
	metrics *http.Server
}

// New puts the handlers together. The engine stays the caller's to close.
func New(e *engine.Engine, opts Options) (*Server, error) {
	handler, err := newHandler(e, opts)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts:   opts,
		public: newHTTPServer(handler, opts.Log),
		admin:  newHTTPServer(operator.Appliance{Engine: e, BaseURL: opts.BaseURL}.Handler(), opts.Log),
	}
	if opts.MetricsListener != nil {
		s.metrics = newHTTPServer(newMetricsHandler(e, opts.Metrics), opts.Log)
	}
	return s, nil
}

// servers are those there are.
func (s *Server) servers() []*http.Server {
	if s.metrics == nil {
		return []*http.Server{s.public, s.admin}
	}
	return []*http.Server{s.public, s.admin, s.metrics}
}

func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve answers on listener, and on the operator's socket, until ctx ends;
// then it lets the requests under way finish. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	socket, err := listenOperator(s.opts.OperatorSocket)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	listeners := []net.Listener{listener, socket, s.opts.MetricsListener}
	ended := make(chan error, len(s.servers()))
	for i, server := range s.servers() {
		go func() { ended <- server.Serve(listeners[i]) }()
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended:
		ended <- http.ErrServerClosed // so that all are waited for below
	}
	err = errors.Join(err, s.drain())
	for range cap(ended) {
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// drain stops accepting and waits for the requests under way; those that take
// too long are cut off.
func (s *Server) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var errs []error
	for _, server := range s.servers() {
		if err := server.Shutdown(ctx); err != nil {
			s.opts.Log.Warn("requests were cut off", "error", err)
			errs = append(errs, server.Close())
		}
	}
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
