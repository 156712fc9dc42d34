package gate

import (
	"errors"
	"strconv"

	"holdfast/engine/model"
)

// Fail makes err the outcome of the request. It returns the error for the client, and logs details that the client
// does not get.
func (x *Exchange) Fail(err error) *model.Error {
	x.err = err
	log := x.gate.Log.With("request_id", x.Call.RequestID, "operation", x.Call.Operation.Action)
	public, ok := errors.AsType[*model.Error](err)
	switch {
	case ok && !public.IsInternal():
		if public.Message != err.Error() && public.Code != model.CodeValidation {
			log.Warn("request refused", "code", public.Code, "error", err)
		}
	case x.Request.Context().Err() != nil:
		log.Debug("client went away", "error", err)
		public = internalError()
	default:
		log.Error("request failed", "error", err)
		public = internalError()
	}
	switch {
	case public.Code == model.CodeUnauthorized:
		x.Header().Set("WWW-Authenticate", "Bearer")
	case public.Code == model.CodeRateLimited, public.Reason == model.ReasonUnavailable:
		x.Header().Set("Retry-After", strconv.Itoa(public.RetryAfterSeconds()))
	}
	return public
}

func internalError() *model.Error { return model.Errorf(model.CodeInternal, "internal error") }
