package model

import (
	"errors"
	"fmt"
	"time"
)

// Code classifies an error by what the client may do about it. The codes are
// those of the specification's error table and of RFC 8628; server/api maps
// each to its HTTP status.
type Code string

// The specification's codes.
const (
	CodeUnauthorized        Code = "unauthorized"
	CodeInsufficientScope   Code = "insufficient_scope"
	CodeDangerousNotAllowed Code = "dangerous_not_allowed"
	CodeForbidden           Code = "forbidden"
	CodeNotFound            Code = "not_found"
	CodeConflict            Code = "conflict"
	CodeValidation          Code = "validation_error"
	CodeRateLimited         Code = "rate_limited"
	CodeInternal            Code = "internal_error"
)

// The results of polling for a device token (RFC 8628, section 3.5).
const (
	CodeAuthorizationPending Code = "authorization_pending"
	CodeSlowDown             Code = "slow_down"
	CodeAccessDenied         Code = "access_denied"
	CodeExpiredToken         Code = "expired_token"
)

// Error is an error meant for the client: Message is shown to a person as it
// is, so it names the field or resource and the remedy and holds no secret.
// Err, when set, is the cause, for the log only.
type Error struct {
	Code       Code
	Message    string
	RetryAfter time.Duration // with CodeRateLimited: when to try again
	Err        error
}

// Error implements error. The text includes the cause and is for logs;
// clients are shown Message.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid says that the input named field breaks a rule; remedy says what
// would be right.
func Invalid(field, format string, args ...any) *Error {
	return Errorf(CodeValidation, "%s: %s", field, fmt.Sprintf(format, args...))
}

// NotFound says that no such resource is in the caller's organization.
func NotFound(kind ResourceType, id string) *Error {
	return Errorf(CodeNotFound, "no %s %q in this organization", kind, id)
}

// CodeOf returns the code of the first *Error in err's chain,
// CodeInternal when there is none, and "" when err is nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// PublicMessage returns what a client may be told of err: the message of the
// first *Error in its chain, else that something went wrong inside.
func PublicMessage(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "internal error"
}
