package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine"
	"holdfast/engine/model"
)

// humaContext lets exchange embed huma's context and have a method Context.
type humaContext = huma.Context

// exchange is one request and its answer. It stands in for huma's own context
// of the request, so that whatever huma calls back can get at it.
type exchange struct {
	humaContext // nil where no route was found
	gate        *gate
	form        *form
	w           http.ResponseWriter
	r           *http.Request
	ctx         context.Context
	call        *model.Call
	query       url.Values
	// status is that of the answer, which has begun once it is on its way.
	status int
	began  bool
	// body and bodyErr are a JSON body as it was received.
	received bool
	body     []byte
	bodyErr  error
	// bodyEnded is set once the body was read to its end.
	bodyEnded bool
	arrived   time.Time
	// err is the error that was answered, for the audit log.
	err error
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a handler's context belongs to.
func exchangeOf(ctx context.Context) *exchange {
	return ctx.Value(exchangeKey{}).(*exchange)
}

// begin opens the exchange and sets the headers of every answer. The
// exchange must be ended.
func (g *gate) begin(w http.ResponseWriter, r *http.Request, operation model.Operation) *exchange {
	x := &exchange{gate: g, w: w, r: r, arrived: time.Now(), call: &model.Call{
		Operation: operation,
		Actor:     model.Actor{Type: model.ActorKey},
		RequestID: engine.NewRequestID(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: model.CleanText(r.UserAgent(), model.MaxUserAgent),
	}}
	x.ctx = context.WithValue(r.Context(), exchangeKey{}, x)
	header := w.Header()
	header["Content-Type"], header["Cache-Control"], header["X-Content-Type-Options"] = mediaJSON, noStore, noSniff
	header["X-Request-Id"] = []string{x.call.RequestID}
	return x
}

// The values of headers that every answer has: Header.Set would make them anew
// each time.
var (
	mediaJSON = []string{"application/json"}
	noStore   = []string{"no-store"}
	noSniff   = []string{"nosniff"}
)

// end audits the exchange, after what panicked has been answered.
func (x *exchange) end() {
	cause := recover()
	if cause != nil && cause != http.ErrAbortHandler {
		x.gate.log.Error("request panicked", "request_id", x.call.RequestID,
			"operation", x.call.Operation.Action, "panic", cause, "stack", string(debug.Stack()))
		x.err = model.Errorf(model.CodeInternal, "internal error")
		if !x.began {
			x.write(x.failure(internalError()))
			cause = nil
		}
	}
	x.gate.engine.EndOnce(x.call, nil) // where nothing was answered that is kept
	x.gate.engine.Finish(x.call, x.err)
	if x.gate.answered != nil {
		x.gate.answered(x.call.Operation.Action, x.status, time.Since(x.arrived))
	}
	if x.r.ContentLength != 0 && !x.bodyEnded {
		x.allow(drainTimeout)
	}
	if cause != nil {
		panic(http.ErrAbortHandler) // the answer is cut off, so that nobody takes it for whole
	}
}

// Context implements huma.Context; handlers find the exchange in it.
func (x *exchange) Context() context.Context { return x.ctx }

// Unwrap lets the adapter find its own context.
func (x *exchange) Unwrap() huma.Context { return x.humaContext }

// Query implements huma.Context. (huma's own takes "?key" for "?key=true".)
func (x *exchange) Query(name string) string { return x.query.Get(name) }

// Param implements huma.Context. The router gives the rest of a path with the
// slash before it, of which exactly one is taken off: the key of the object
// at …/objects//a is "/a". Ids are cut off where none is that long.
func (x *exchange) Param(name string) string {
	value := x.humaContext.Param(name)
	if name == "key" {
		return strings.TrimPrefix(value, "/")
	}
	return value[:min(len(value), maxID)]
}

// maxID is longer than any id. More than that is neither looked up nor written
// to the audit log.
const maxID = 64

// SetStatus implements huma.Context. The status leaves with the body, whose
// length is known then, and which may still fail to be encoded.
func (x *exchange) SetStatus(status int) { x.status = status }

// BodyWriter implements huma.Context.
func (x *exchange) BodyWriter() io.Writer { return x }

// Write sends the whole answer: bodies come in one piece, from writeJSON. Who
// went away needs no answer, so that there is no error.
func (x *exchange) Write(body []byte) (int, error) {
	x.keepAnswer(body)
	x.began = true
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(x.status)
	_, _ = x.w.Write(body)
	return len(body), nil
}

func (x *exchange) meta() Meta { return Meta{RequestID: x.call.RequestID} }

// drainTimeout is how long the server may wait for the rest of a body that
// nobody wants, so as to keep the connection.
const drainTimeout = 10 * time.Second

// maxNote bounds, in bytes, what of an unknown request's own words the audit
// log keeps.
const maxNote = 256
