package gate

import (
	"context"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// exchange is one request and its answer. It is the http.ResponseWriter of
// what serves the request. The answer begins with the first byte of its body,
// or at the handler's end: what fails before is answered with its own status.
type exchange struct {
	http.ResponseWriter // the server's
	gate                *Gate
	// request has the exchange in its context.
	request *http.Request
	// body is the request's, nil for none.
	body *body
	call *model.Call
	// status is that of the answer, 0 for 200; began is set once it is sent.
	status  int
	began   bool
	arrived time.Time
	// err is the error that was answered, for the audit log.
	err error
}

type exchangeKey struct{}

func of(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// CallOf returns the call of the request that ctx belongs to.
func CallOf(ctx context.Context) *model.Call { return of(ctx).call }

// NextCall begins another act of the same request, with an audit entry of its
// own. It is the request's call from then on.
func NextCall(ctx context.Context, action model.Action) *model.Call {
	x := of(ctx)
	next := *x.call
	next.Audited, next.Details = false, nil
	next.Operation.Action = action
	x.call = &next
	return x.call
}

// begin opens the exchange and sets the headers of every answer. The exchange
// must be ended.
func (g *Gate) begin(w http.ResponseWriter, r *http.Request, operation model.Operation) *exchange {
	x := &exchange{ResponseWriter: w, gate: g, arrived: time.Now(), call: &model.Call{
		Operation: operation,
		Actor:     model.Actor{Type: model.ActorKey},
		RequestID: core.NewRequestID(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: model.CleanText(r.UserAgent(), model.MaxUserAgent),
	}}
	x.request = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &body{ReadCloser: r.Body}
		x.request.Body = x.body
	}
	maps.Copy(w.Header(), g.Header)
	w.Header()["X-Request-Id"] = []string{x.call.RequestID}
	return x
}

// end audits the exchange, after what panicked has been answered.
func (x *exchange) end() {
	cause := recover()
	if cause != nil && cause != http.ErrAbortHandler {
		x.gate.Log.Error("request panicked", "request_id", x.call.RequestID,
			"operation", x.call.Operation.Action, "panic", cause, "stack", string(debug.Stack()))
		x.err = internalError()
		if !x.began {
			x.gate.WriteError(x, x.call, internalError())
			cause = nil
		}
	}
	if cause == nil {
		x.start()
	}
	x.gate.Engine.Core.EndOnce(x.call, nil) // where no answer was kept
	x.gate.Engine.Core.Finish(x.call, x.err)
	if x.gate.Answered != nil {
		x.gate.Answered(x.call.Operation.Action, x.status, time.Since(x.arrived))
	}
	if x.body != nil && !x.body.ended {
		SetBodyTimeout(x, drainTimeout)
	}
	if cause != nil {
		panic(http.ErrAbortHandler) // the answer is cut off, so that no client takes it for whole
	}
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if !x.began {
		x.status = status
	}
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(p []byte) (int, error) {
	x.start()
	return x.ResponseWriter.Write(p)
}

// start sends the status and the headers, once.
func (x *exchange) start() {
	if x.began {
		return
	}
	x.began = true
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.ResponseWriter.WriteHeader(x.status)
}

// Unwrap implements what http.ResponseController looks for.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
