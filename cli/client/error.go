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

// Error is a request that the API refused.
type Error struct {
	Status     int
	Code       wire.ErrorCode
	Message    string        // for people
	RetryAfter time.Duration // when to retry; 0 if the API does not say
	RequestID  string        // as in the audit log
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

var (
	// ErrNotAPI means that the server is not holdfast's API.
	ErrNotAPI = errors.New("what answers is not holdfast's API")
	// ErrUnavailable means that a proxy answered because it could not reach the
	// appliance.
	ErrUnavailable = errors.New("a proxy does not reach the appliance")
)

// CodeOf returns the code of the first *Error in err's chain, or "".
func CodeOf(err error) wire.ErrorCode {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Refusal returns the error in a response from Do, or nil for a success. It
// does not read the body of a success.
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
	e.RetryAfter = pauseAsked(answer)
	return e
}

// pauseAsked returns when a response says to retry, 0 if it does not say.
func pauseAsked(answer *http.Response) time.Duration {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(max(seconds, 0)) * time.Second
}

// notAPI is the error for a response that is not from the API.
func notAPI(answer *http.Response) error {
	if byGateway(answer) {
		return fmt.Errorf("%w: %s", ErrUnavailable, told(answer))
	}
	return fmt.Errorf("%w: %s", ErrNotAPI, told(answer))
}

// byGateway reports whether the status means that a gateway got no response.
func byGateway(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// told describes a response and its address, without the query, which may hold a
// signature.
func told(answer *http.Response) string {
	at := answer.Request.URL
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String() + " answers " + answer.Status
}
