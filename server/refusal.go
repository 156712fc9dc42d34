package server

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"holdfast/engine/model"
	"holdfast/server/api"
)

// answering marks the connection of each request that reaches a handler. Until the response is complete, everything
// written to the connection is the handler's.
func answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*guardedConn); ok {
			c.answering.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// refusal matches what net/http writes, in one call, before it closes the connection of a request that it does not
// pass to a handler: one that is not HTTP (400), or has a head that is too large (431) or an unknown expectation (417)
// or transfer encoding (501). The detail is one of net/http's own texts.
var refusal = regexp.MustCompile(`^HTTP/1\.[01] ([45]\d\d) [^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n(?:\d{3} [A-Za-z ]+: )?([^\r\n]*)`)

// explainRefusal returns the same refusal with the JSON of the API's errors, or nil if p is not one.
func explainRefusal(p []byte) []byte {
	parts := refusal.FindSubmatch(p)
	if parts == nil {
		return nil
	}
	status, _ := strconv.Atoi(string(parts[1]))
	detail := string(parts[2])
	if detail == strconv.Itoa(status)+" "+http.StatusText(status) {
		detail = ""
	}
	body := api.Refusal(model.CodeValidation, refusalMessage(status, detail))
	var answer bytes.Buffer
	fmt.Fprintf(&answer, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"+
		"X-Request-Id: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), body.RequestID, len(body.Text), body.Text)
	return answer.Bytes()
}

func refusalMessage(status int, detail string) string {
	switch {
	case status == http.StatusRequestHeaderFieldsTooLarge:
		return fmt.Sprintf("the request line and the headers together have more than %d KiB", maxHeaderBytes>>10)
	case status == http.StatusNotImplemented:
		return "Transfer-Encoding: only chunked is supported"
	case status == http.StatusExpectationFailed:
		return "Expect: only 100-continue is supported"
	case detail == "Client sent an HTTP request to an HTTPS server.":
		return "this port expects HTTPS: begin the address with https://"
	case detail != "":
		return "this is not a valid HTTP request: " + detail
	default:
		return "this is not a valid HTTP request"
	}
}
