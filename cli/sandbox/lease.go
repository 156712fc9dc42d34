package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"holdfast/engine/model"
	"holdfast/server/operator"
)

// Lease holds a sandbox. The appliance removes the sandbox when this process
// releases it or exits.
type Lease struct {
	operator.Sandbox
	// Socket is the path of the appliance's socket.
	Socket string
	hold   *io.PipeWriter // the request's body: the sandbox lives until it ends
	answer *http.Response
	lost   chan struct{} // closed when the sandbox ends while it is held
	why    error         // set before lost is closed
	ended  chan error    // the appliance's last report
}

// The variables that lead test suites to the databases of a lease, see package cli/client/sandbox.
const (
	SocketVariable = "HOLDFAST_SANDBOX_SOCKET"
	TokenVariable  = "HOLDFAST_SANDBOX_TOKEN"
)

// Environ returns base with the variables that lead to the lease.
func (l *Lease) Environ(base []string) []string {
	return append(base, SocketVariable+"="+l.Socket, TokenVariable+"="+l.Token)
}

// ErrClosing means that the appliance is stopping.
var ErrClosing = errors.New("the appliance is being stopped")

var (
	// errCutOff means that the appliance ended without a report.
	errCutOff = errors.New("the appliance has ended, and the database with it")
	// errTaken means that the appliance removed the sandbox and gave no reason.
	errTaken = errors.New("the appliance has removed the database")
)

// Take requests a sandbox from an appliance, over the socket that dial connects
// to. It passes an import's progress to importing. It returns connection errors
// unchanged, so that the caller can tell when no appliance runs.
func Take(ctx context.Context, dial func(context.Context) (net.Conn, error), in operator.NewSandbox, importing func(operator.Importing)) (*Lease, error) {
	asked, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	body, hold := io.Pipe()
	go func() { _, _ = hold.Write(asked) }() // the request reports the error
	post, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, "http://holdfast"+operator.SandboxPath, body)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { hold.CloseWithError(ctx.Err()) })()
	connected := false
	answer, err := (&http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			connected = err == nil
			return held{conn, hold}, err
		},
	}).RoundTrip(post)
	if err != nil {
		hold.Close()
		if connected && ctx.Err() == nil {
			return nil, ErrClosing // it was killed before it responded
		}
		return nil, errors.Join(ctx.Err(), err)
	}
	l := &Lease{hold: hold, answer: answer, lost: make(chan struct{}), ended: make(chan error, 1)}
	if answer.StatusCode == http.StatusServiceUnavailable {
		l.close()
		return nil, ErrClosing
	}
	if answer.StatusCode != http.StatusOK {
		l.close()
		return nil, fmt.Errorf("the appliance answered %s: is it of another version?", answer.Status)
	}
	events := json.NewDecoder(answer.Body)
	if err := l.await(events, importing); err != nil {
		l.close()
		return nil, errors.Join(ctx.Err(), err)
	}
	go func() { l.ended <- l.follow(events) }()
	return l, nil
}

// held is a connection that ends the request's body when it is cut off: a
// RoundTrip does not return while it waits for more of the body.
type held struct {
	net.Conn
	hold *io.PipeWriter
}

// Read implements net.Conn.
func (h held) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if err != nil {
		h.hold.Close()
	}
	return n, err
}

// await reads events until the sandbox is ready.
func (l *Lease) await(events *json.Decoder, importing func(operator.Importing)) error {
	for {
		var event operator.SandboxEvent
		if err := events.Decode(&event); err != nil {
			return errCutOff
		}
		switch {
		case event.Code != "":
			return &model.Error{Code: event.Code, Message: event.Message}
		case event.Ending != "":
			return &model.Error{Code: model.CodeConflict, Message: event.Ending}
		case event.Importing != nil:
			importing(*event.Importing)
		case event.Ready != nil:
			l.Sandbox = *event.Ready
			return nil
		default:
			return errCutOff // it is stopping
		}
	}
}

// follow reads the appliance's events about a held sandbox, up to the last.
// Unless the sandbox was released, the first event means that it is lost.
func (l *Lease) follow(events *json.Decoder) error {
	last, err := next(events)
	l.why = cmp.Or(err, errTaken)
	close(l.lost)
	for !last {
		last, err = next(events)
	}
	return err
}

// next reads one event and reports whether it is the last.
func next(events *json.Decoder) (last bool, err error) {
	var event operator.SandboxEvent
	switch err := events.Decode(&event); {
	case err != nil:
		return true, errCutOff
	case event.Code != "":
		return true, &model.Error{Code: event.Code, Message: event.Message}
	case event.Ending != "":
		return false, errors.New(event.Ending)
	default:
		return true, nil
	}
}

// Why returns why the sandbox is lost, or nil while it is held. After Release it
// has no meaning.
func (l *Lease) Why() error {
	select {
	case <-l.lost:
		return l.why
	default:
		return nil
	}
}

// whileHeld returns a context that ends with ctx or when the sandbox is lost.
func (l *Lease) whileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-l.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-stopped }
}

// releaseTimeout is how long Release waits. The removal continues after it.
const releaseTimeout = 30 * time.Second

// Release releases the sandbox and returns once it is removed. Nothing is sent about one that is lost: the appliance removes it by
// itself, and may have closed the connection. The failure to send would end the reading of its last events.
func (l *Lease) Release() error {
	if l.Why() == nil {
		l.hold.Close()
	}
	defer l.close()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(releaseTimeout):
		return errors.New("the appliance is still removing the database")
	}
}

func (l *Lease) close() {
	l.hold.Close()
	l.answer.Body.Close()
}
