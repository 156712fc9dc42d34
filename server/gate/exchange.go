package gate

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Exchange is a request and its response. It is the http.ResponseWriter of the request's handler. The response
// begins with the first byte of its body, or when the handler returns: an error before that still gets its own
// status.
type Exchange struct {
	http.ResponseWriter // the server's
	// Request has the exchange in its context.
	Request *http.Request
	// Call is the request's call of the engine.
	Call *model.Call

	gate *Gate
	// body is the request body, or nil.
	body *body
	// status is the status of the response, 0 for 200; began is set once it is sent.
	status  int
	began   bool
	arrived time.Time
	// err is the error in the response, for the audit log.
	err error
}

type exchangeKey struct{}

// Of returns the exchange of the request with the context ctx.
func Of(ctx context.Context) *Exchange { return ctx.Value(exchangeKey{}).(*Exchange) }

// NextCall begins another operation of the same request, with its own audit entry. It becomes the request's call.
func (x *Exchange) NextCall(action model.Action) *model.Call {
	next := *x.Call
	next.Audited, next.Details = false, nil
	next.Operation.Action = action
	x.Call = &next
	return x.Call
}

// begin starts the exchange and sets the headers of every response. The caller must end the exchange.
func (g *Gate) begin(w http.ResponseWriter, r *http.Request, operation model.Operation) *Exchange {
	x := &Exchange{ResponseWriter: w, gate: g, arrived: time.Now(), Call: &model.Call{
		Operation: operation,
		Actor:     model.Actor{Type: model.ActorKey},
		RequestID: core.NewRequestID(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: model.CleanText(r.UserAgent(), model.MaxUserAgent),
	}}
	x.Request = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &body{ReadCloser: r.Body}
		x.Request.Body = x.body
	}
	maps.Copy(w.Header(), g.Header)
	w.Header()["X-Request-Id"] = []string{x.Call.RequestID}
	return x
}

// end responds to a panic, and audits the exchange.
func (x *Exchange) end() {
	cause := recover()
	if cause != nil && cause != http.ErrAbortHandler {
		x.gate.Log.Error("request panicked", "request_id", x.Call.RequestID,
			"operation", x.Call.Operation.Action, "panic", cause, "stack", string(debug.Stack()))
		x.err = internalError()
		if !x.began {
			x.gate.WriteError(x, internalError())
			cause = nil
		}
	}
	if cause == nil {
		_, _ = x.Write(nil) // a response without a body has not begun yet
	}
	x.gate.Engine.Core.EndIdempotent(x.Call, nil) // if no response was kept
	x.gate.Engine.Core.Finish(x.Call, x.err)
	if x.gate.Answered != nil {
		x.gate.Answered(x.Call.Operation.Action, x.status, time.Since(x.arrived))
	}
	if x.body != nil && !x.body.ended {
		x.SetBodyTimeout(drainTimeout)
	}
	if cause != nil {
		panic(http.ErrAbortHandler) // cuts the response off, so that no client takes it for complete
	}
}

// WriteHeader implements http.ResponseWriter.
func (x *Exchange) WriteHeader(status int) {
	if !x.began {
		x.status = status
	}
}

// Write implements http.ResponseWriter. The first call sends the status and the headers.
func (x *Exchange) Write(p []byte) (int, error) {
	x.begin()
	return x.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom: the kernel can send a file.
func (x *Exchange) ReadFrom(src io.Reader) (int64, error) {
	x.begin()
	return io.Copy(x.ResponseWriter, src)
}

func (x *Exchange) begin() {
	if !x.began {
		x.began = true
		x.status = cmp.Or(x.status, http.StatusOK)
		x.ResponseWriter.WriteHeader(x.status)
	}
}

// Err returns the error that is the outcome of the request, nil if there is none yet.
func (x *Exchange) Err() error { return x.err }

// Unwrap implements the interface that http.ResponseController uses.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
