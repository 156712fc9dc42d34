package model

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Code classifies an error by what the client can do about it. The codes are
// those of the specification's error table and of RFC 8628; server/api maps each
// to its HTTP status.
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
	// CodeReadOnly: another machine has taken this one's work over.
	CodeReadOnly Code = "read_only"
)

// The results of polling for a device token (RFC 8628, section 3.5).
const (
	CodeAuthorizationPending Code = "authorization_pending"
	CodeSlowDown             Code = "slow_down"
	CodeAccessDenied         Code = "access_denied"
	CodeExpiredToken         Code = "expired_token"
)

// Reason refines a code where HTTP has a status of its own for it. The code stays the specification's.
type Reason string

// The reasons.
const (
	ReasonTooLarge Reason = "too_large" // the body has too many bytes
	ReasonNoSpace  Reason = "no_space"  // the disk is full
	ReasonChanged  Reason = "changed"   // the resource is not the one of If-Match
	// ReasonUnavailable: what is needed is elsewhere and cannot be had now. Clients see the message.
	ReasonUnavailable Reason = "unavailable"
)

// Error is an error meant for the client. People see Message unchanged, so it
// names the field or resource and the remedy and contains no secret. Err, if set,
// is the cause, for the log only.
type Error struct {
	Code       Code
	Reason     Reason // "" if the code says it all
	Message    string
	RetryAfter time.Duration // with CodeRateLimited and ReasonUnavailable: how long to wait
	Err        error
}

// RetryAfterSeconds returns RetryAfter as the header Retry-After has it: in seconds, rounded up, at least 1.
func (e *Error) RetryAfterSeconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// Error implements error. The text includes the cause and is for logs; clients
// see Message.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid reports that the input named field breaks a rule; the message says what
// would be valid.
func Invalid(field, format string, args ...any) *Error {
	return Errorf(CodeValidation, "%s: %s", field, fmt.Sprintf(format, args...))
}

// NotFound reports that the caller's organization has no such resource.
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

// IsInternal reports whether the error is the appliance's failure. Of one with [ReasonUnavailable] clients learn the cause.
func (e *Error) IsInternal() bool { return e.Code == CodeInternal && e.Reason != ReasonUnavailable }

// PublicMessage returns the text of err for clients: the message of the first
// *Error in its chain, otherwise that an internal error occurred.
func PublicMessage(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "internal error"
}
