package sigv4

import "fmt"

// Error is the reason for which a request is refused: one of the error codes of S3, and a message for the client.
type Error struct {
	Code, Message string
	// Region is the right region if the request was signed for another one, else "".
	Region string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func refuse(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
