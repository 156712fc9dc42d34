package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"holdfast/server/api/wire"
)

// Error is a request that the API has refused.
type Error struct {
	Status     int
	Code       wire.ErrorCode
	Message    string        // for people
	RetryAfter time.Duration // when to try again; 0 where the API does not say
	RequestID  string        // as in the audit log
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

var (
	// ErrNotAPI says that something answers, but not as the API does.
	ErrNotAPI = errors.New("what answers is not holdfast's API")
	// ErrUnavailable says that a proxy answers in the appliance's place, because
	// it does not get an answer itself.
	ErrUnavailable = errors.New("a proxy does not reach the appliance")
)

// CodeOf returns the code of the first *Error in err's chain, "" when there
// is none.
func CodeOf(err error) wire.ErrorCode {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Refusal returns what an answer of Do says went wrong, nil for a success. It
// reads the body of no success.
func Refusal(answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	var failure struct {
		Error wire.Problem `json:"error"`
		Meta  wire.Meta    `json:"meta"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&failure); err != nil || failure.Error.Code == "" {
		return notAPI(answer)
	}
	e := &Error{
		Status: answer.StatusCode, Code: failure.Error.Code, Message: failure.Error.Message, RequestID: failure.Meta.RequestID,
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// notAPI is the error for an answer that is not the API's.
func notAPI(answer *http.Response) error {
	if byGateway(answer) {
		return fmt.Errorf("%w: %s", ErrUnavailable, told(answer))
	}
	return fmt.Errorf("%w: %s", ErrNotAPI, told(answer))
}

// byGateway reports whether a status is that of a gateway without an answer.
func byGateway(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// told describes an answer and its address, without the query, which may hold a signature.
func told(answer *http.Response) string {
	at := answer.Request.URL
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String() + " answers " + answer.Status
}
