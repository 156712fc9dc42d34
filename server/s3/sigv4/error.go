package sigv4

import "fmt"

// Error is the reason for which a request is refused: one of the error codes of S3, and a message for the client.
type Error struct {
	Code, Message string
	// Details are further elements of the response.
	Details []Detail
}

// Detail is an element of the response to a request that is refused.
type Detail struct{ Name, Value string }

// Error implements error.
func (e *Error) Error() string { return e.Message }

func refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// with adds an element to the response.
func (e *Error) with(name, value string) *Error {
	e.Details = append(e.Details, Detail{name, value})
	return e
}
