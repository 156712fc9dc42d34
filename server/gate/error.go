package gate

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"holdfast/engine/model"
)

// Refuse answers err to a request, in its protocol.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	x := of(r.Context())
	x.gate.WriteError(w, x.call, x.fail(err))
}

func (x *exchange) refuse(err error) { Refuse(x, x.request, err) }

// Fail makes err the outcome of the request that ctx belongs to, and returns
// what the client is to be told of it, for handlers that answer themselves.
func Fail(ctx context.Context, err error) *model.Error { return of(ctx).fail(err) }

func (x *exchange) fail(err error) *model.Error {
	x.err = err
	public := x.public(err)
	switch public.Code {
	case model.CodeUnauthorized:
		x.Header().Set("WWW-Authenticate", "Bearer")
	case model.CodeRateLimited:
		x.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(public.RetryAfter.Seconds())))))
	}
	return public
}

// public returns what the client is told of err, and logs what it is not
// told.
func (x *exchange) public(err error) *model.Error {
	log := x.gate.Log.With("request_id", x.call.RequestID, "operation", x.call.Operation.Action)
	public, ok := errors.AsType[*model.Error](err)
	switch {
	case ok && public.Code != model.CodeInternal:
		if public.Message != err.Error() && public.Code != model.CodeValidation {
			log.Warn("request refused", "code", public.Code, "error", err)
		}
		return public
	case x.request.Context().Err() != nil:
		log.Debug("client went away", "error", err)
	default:
		log.Error("request failed", "error", err)
	}
	return internalError()
}

func internalError() *model.Error { return model.Errorf(model.CodeInternal, "internal error") }
