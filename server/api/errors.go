package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
)

// StatusOf is the one map from an error's code to its HTTP status, for the
// pages too.
func StatusOf(code model.Code) int {
	switch code {
	case model.CodeAuthorizationPending, model.CodeSlowDown, model.CodeAccessDenied, model.CodeExpiredToken:
		return http.StatusBadRequest
	case model.CodeUnauthorized:
		return http.StatusUnauthorized
	case model.CodeInsufficientScope, model.CodeDangerousNotAllowed, model.CodeForbidden:
		return http.StatusForbidden
	case model.CodeNotFound:
		return http.StatusNotFound
	case model.CodeConflict:
		return http.StatusConflict
	case model.CodeValidation:
		return http.StatusUnprocessableEntity
	case model.CodeRateLimited:
		return http.StatusTooManyRequests
	default:
		return http.StatusInternalServerError
	}
}

// Problem is what went wrong.
type Problem struct {
	Code    model.Code `json:"code" doc:"What went wrong, for programs."`
	Message string     `json:"message" doc:"What went wrong and what would be right, for people."`
}

// Failure wraps every error that is answered. It implements huma.StatusError.
type Failure struct {
	Problem Problem `json:"error"`
	Meta    Meta    `json:"meta"`
}

// GetStatus implements huma.StatusError.
func (f *Failure) GetStatus() int { return StatusOf(f.Problem.Code) }

// Error implements error.
func (f *Failure) Error() string { return f.Problem.Message }

// fail makes err the outcome of the exchange and returns how it is answered.
func (x *exchange) fail(err error) *Failure {
	x.err = err
	public := x.public(err)
	switch header := x.w.Header(); public.Code {
	case model.CodeUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case model.CodeRateLimited:
		header.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(public.RetryAfter.Seconds())))))
	}
	return x.failure(public)
}

func (x *exchange) failure(e *model.Error) *Failure {
	return &Failure{Problem: Problem{Code: e.Code, Message: e.Message}, Meta: x.meta()}
}

// public returns what the client is told of err, and logs what it is not
// told.
func (x *exchange) public(err error) *model.Error {
	log := x.gate.log.With("request_id", x.call.RequestID, "operation", x.call.Operation.Action)
	public, ok := errors.AsType[*model.Error](err)
	switch {
	case ok && public.Code != model.CodeInternal:
		if public.Message != err.Error() && public.Code != model.CodeValidation {
			log.Warn("request refused", "code", public.Code, "error", err)
		}
		return public
	case x.r.Context().Err() != nil:
		log.Debug("client went away", "error", err)
	default:
		log.Error("request failed", "error", err)
	}
	return internalError()
}

func internalError() *model.Error { return model.Errorf(model.CodeInternal, "internal error") }

// refuse answers err where huma does not.
func (x *exchange) refuse(err error) { x.write(x.fail(err)) }

func (x *exchange) write(f *Failure) {
	x.SetStatus(f.GetStatus())
	_ = writeJSON(x, f) // a Failure can always be encoded
}

// setErrors makes huma's own complaints Failures. They are all about the form
// of a request, whatever status huma has for them, since nothing else of huma
// can go wrong. huma keeps these settings in variables of its package, so they
// are set here for the whole process, once.
var setErrors = sync.OnceFunc(func() {
	// {"NAME": …} is an unknown field, not another way to write "name".
	huma.ValidateStrictCasing = true
	// Arrays are never null, neither in nor out.
	huma.DefaultArrayNullable = false
	huma.NewError = func(int, string, ...error) huma.StatusError { return &Failure{} }
	huma.NewErrorWithContext = func(ctx huma.Context, _ int, message string, errs ...error) huma.StatusError {
		x, ok := ctx.(*exchange)
		if !ok {
			return &Failure{}
		}
		return x.fail(x.form.complaint(message, errs))
	}
})
