package api

import (
	"errors"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// StatusOf is the only map from an error's code to its HTTP status. The console's pages use it too.
func StatusOf(code model.Code) int {
	switch code {
	case model.CodeAuthorizationPending, model.CodeSlowDown, model.CodeAccessDenied, model.CodeExpiredToken:
		return http.StatusBadRequest
	case model.CodeUnauthorized:
		return http.StatusUnauthorized
	case model.CodeInsufficientScope, model.CodeDangerousNotAllowed, model.CodeForbidden, model.CodeReadOnly:
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

// StatusOfError is StatusOf, with the status of the error's reason where it has one.
func StatusOfError(err error) int {
	public, ok := errors.AsType[*model.Error](err)
	if !ok {
		return StatusOf(model.CodeOf(err))
	}
	switch public.Reason {
	case model.ReasonTooLarge:
		return http.StatusRequestEntityTooLarge
	case model.ReasonNoSpace:
		return http.StatusInsufficientStorage
	case model.ReasonUnavailable:
		return http.StatusServiceUnavailable
	case model.ReasonChanged:
		return http.StatusPreconditionFailed
	default:
		return StatusOf(public.Code)
	}
}

// Failure wraps every error response. It implements huma.StatusError.
type Failure struct {
	Problem wire.Problem `json:"error"`
	Meta    wire.Meta    `json:"meta"`
	status  int
}

// GetStatus implements huma.StatusError.
func (f *Failure) GetStatus() int { return f.status }

// Error implements error.
func (f *Failure) Error() string { return f.Problem.Message }

// newFailure returns the response to an error.
func newFailure(x *gate.Exchange, public *model.Error) *Failure {
	return &Failure{Problem: wire.Problem{Code: wire.ErrorCode(public.Code), Message: public.Message}, Meta: metaOf(x.Call), status: StatusOfError(public)}
}

// fail makes err the outcome of the request, and returns the response.
func fail(x *gate.Exchange, err error) *Failure { return newFailure(x, x.Fail(err)) }

// writeError writes an error response outside huma.
func writeError(x *gate.Exchange, public *model.Error) {
	x.WriteHeader(StatusOfError(public))
	_ = writeJSON(x, newFailure(x, public)) // a Failure can always be encoded
}

// RefusalBody is the body of a response to a request that the server could not read, and the id in it.
type RefusalBody struct {
	Text      []byte
	RequestID string
}

// Refusal returns the body of the response to what no operation is asked: input that is not a request, or one too many.
func Refusal(code model.Code, message string) RefusalBody {
	call := &model.Call{RequestID: core.NewRequestID()}
	public := model.Errorf(code, "%s", message)
	text, _ := encodeJSON(&Failure{Problem: wire.Problem{Code: wire.ErrorCode(public.Code), Message: public.Message}, Meta: metaOf(call)}) // a Failure can always be encoded
	return RefusalBody{Text: text, RequestID: call.RequestID}
}

// setErrors turns huma's own errors into Failures. They all concern the form of a request, regardless of huma's
// status, since nothing else in huma can fail. huma keeps these settings in package variables, so they are set once
// for the whole process.
var setErrors = sync.OnceFunc(func() {
	// {"NAME": …} is an unknown field, not another spelling of "name".
	huma.ValidateStrictCasing = true
	// Arrays are never null in requests or responses.
	huma.DefaultArrayNullable = false
	huma.NewError = func(int, string, ...error) huma.StatusError { return &Failure{} }
	huma.NewErrorWithContext = func(ctx huma.Context, _ int, message string, errs ...error) huma.StatusError {
		return fail(gate.Of(ctx.Context()), formOf(ctx.Operation()).complaint(message, errs))
	}
})
