package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// errStalled is why a request was given up whose transfer stood still.
var errStalled = errors.New("nothing moved for too long")

// answer is what the transport notes of the last response to a request whose context
// holds it: the S3 library keeps neither.
type answer struct {
	mu     sync.Mutex
	header http.Header
}

type answerKey struct{}

func withAnswer(ctx context.Context) (context.Context, *answer) {
	a := &answer{}
	return context.WithValue(ctx, answerKey{}, a), a
}

func (a *answer) set(h http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.header = h
}

func (a *answer) get(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.header.Get(name)
}

// retryAfter returns how long the store wants to be left alone, 0 if it did not say.
func (a *answer) retryAfter(now time.Time) time.Duration {
	v := a.get("Retry-After")
	if seconds, err := strconv.Atoi(v); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// clockSkew returns how far the clock of the store is ahead, false if it did not say.
func (a *answer) clockSkew(now time.Time) (time.Duration, bool) {
	at, err := http.ParseTime(a.get("Date"))
	return at.Sub(now).Round(time.Second), err == nil
}

// transport is an http.RoundTripper that gives up a request whose transfer stands
// still, in either direction.
type transport struct {
	http   *http.Transport
	header time.Duration // from the last byte sent to the first received
	stall  time.Duration // between two bytes
}

// newTransport returns a transport. caBundle is a file of certificates to trust
// beside the system's, or empty.
func newTransport(o Options, caBundle string) (*transport, error) {
	roots, err := trusted(caBundle)
	if err != nil {
		return nil, err
	}
	return &transport{
		http: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     30 * time.Second,
			DisableCompression:  true, // or the length of an object would be that of its transfer
			WriteBufferSize:     64 << 10,
			ReadBufferSize:      64 << 10,
		},
		header: o.HeaderTimeout,
		stall:  o.StallTimeout,
	}, nil
}

// trusted returns the certificates to trust, nil for the system's.
func trusted(caBundle string) (*x509.CertPool, error) {
	if caBundle == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(caBundle)
	if err != nil {
		return nil, fmt.Errorf("read AWS_CA_BUNDLE: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read AWS_CA_BUNDLE: %s holds no certificate in PEM form", caBundle)
	}
	return roots, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{timer: time.AfterFunc(t.header, func() { cancel(errStalled) })}
	req = req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &upload{req.Body, w, t}
	}
	res, err := t.http.RoundTrip(req)
	w.stop()
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	if a, ok := ctx.Value(answerKey{}).(*answer); ok {
		a.set(res.Header)
	}
	res.Body = &download{res.Body, ctx, cancel, w, t.stall}
	return res, nil
}

// watch ends a request unless it is wound up again in time.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (w *watch) reset(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(d)
	}
}

// pause holds until the next reset.
func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// stop holds until resume: what the transport still does for the upload, after the
// response, no longer counts.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

func (w *watch) resume(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = false
	w.timer.Reset(d)
}

// upload is the body of a request. The time that reading it takes, which a bandwidth
// limit makes long, is not the store's.
type upload struct {
	io.ReadCloser
	watch *watch
	t     *transport
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.watch.pause()
	n, err := u.ReadCloser.Read(p)
	if err == nil {
		u.watch.reset(u.t.stall)
	} else {
		u.watch.reset(u.t.stall + u.t.header)
	}
	return n, err
}

// download is the body of a response.
type download struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *watch
	stall  time.Duration
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	d.watch.resume(d.stall)
	n, err := d.ReadCloser.Read(p)
	d.watch.stop()
	if err != nil && errors.Is(context.Cause(d.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

// Close implements io.Closer.
func (d *download) Close() error {
	d.watch.stop()
	err := d.ReadCloser.Close()
	d.cancel(nil)
	return err
}
