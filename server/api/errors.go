package api

import (
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
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

// Failure wraps every error that is answered. It implements huma.StatusError.
type Failure struct {
	Problem wire.Problem `json:"error"`
	Meta    wire.Meta    `json:"meta"`
}

// GetStatus implements huma.StatusError.
func (f *Failure) GetStatus() int { return StatusOf(model.Code(f.Problem.Code)) }

// Error implements error.
func (f *Failure) Error() string { return f.Problem.Message }

// newFailure returns how an error is answered.
func newFailure(x *gate.Exchange, public *model.Error) *Failure {
	return &Failure{Problem: wire.Problem{Code: wire.ErrorCode(public.Code), Message: public.Message}, Meta: metaOf(x.Call)}
}

// fail makes err the outcome of the request, and returns how it is answered.
func fail(x *gate.Exchange, err error) *Failure { return newFailure(x, x.Fail(err)) }

// writeError answers an error where huma does not.
func writeError(x *gate.Exchange, public *model.Error) {
	x.WriteHeader(StatusOf(public.Code))
	_ = writeJSON(x, newFailure(x, public)) // a Failure can always be encoded
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
		return fail(gate.Of(ctx.Context()), formOf(ctx.Operation()).complaint(message, errs))
	}
})
