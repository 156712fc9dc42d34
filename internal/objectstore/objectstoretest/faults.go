package objectstoretest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Answer answers with an error of S3 and does not forward. header is names and
// values in turn.
func Answer(status int, code string, header ...string) Act {
	return func(x *Exchange) {
		_, _ = io.Copy(io.Discard, x.r.Body)
		x.answer(status, code, header...)
	}
}

// AnswerEarly is Answer before the body of the request has been read.
func AnswerEarly(status int, code string, header ...string) Act {
	return func(x *Exchange) { x.answer(status, code, header...) }
}

func (x *Exchange) answer(status int, code string, header ...string) {
	for i := 0; i+1 < len(header); i += 2 {
		x.w.Header().Set(header[i], header[i+1])
	}
	x.w.Header().Set("Content-Type", "application/xml")
	x.w.WriteHeader(status)
	_, _ = fmt.Fprintf(x.w, "<Error><Code>%s</Code><Message>injected by a test</Message></Error>", code)
}

// Echo is what a store answers that refuses a signature and shows what it got.
func Echo(text string) Act {
	return func(x *Exchange) {
		x.w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(x.w, "<Error><Code>SignatureDoesNotMatch</Code><Message>You sent %s</Message></Error>", text)
	}
}

// SlowDown is what a store answers that has too much to do.
func SlowDown() Act { return Answer(http.StatusServiceUnavailable, "SlowDown") }

// Denied is what a store answers to credentials that were revoked.
func Denied() Act { return Answer(http.StatusForbidden, "AccessDenied") }

// NoBucket is what a store answers whose bucket was removed.
func NoBucket() Act { return Answer(http.StatusNotFound, "NoSuchBucket") }

// Full is what a store answers that has no space left.
func Full() Act { return Answer(http.StatusInsufficientStorage, "InsufficientStorage") }

// Quota is what a store answers whose quota is used up.
func Quota() Act { return Answer(http.StatusForbidden, "QuotaExceeded") }

// ClockSkew is what a store answers whose clock is ahead by d.
func ClockSkew(d time.Duration) Act {
	return Answer(http.StatusForbidden, "RequestTimeTooSkewed", "Date", time.Now().Add(d).UTC().Format(http.TimeFormat))
}

// Reset breaks the connection without forwarding.
func Reset() Act { return (*Exchange).Reset }

// ResetUpload breaks the connection after n bytes of the request.
func ResetUpload(n int64) Act {
	return func(x *Exchange) {
		_, _ = io.CopyN(io.Discard, x.r.Body, n)
		x.Reset()
	}
}

// LoseAnswer forwards the request, waits for the server's answer and breaks the
// connection in its place.
func LoseAnswer() Act {
	return func(x *Exchange) {
		if res, err := x.send(); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		x.Reset()
	}
}

// Twice forwards the request, drops the answer, and forwards it again, as proxies do
// that repeat what they should not.
func Twice() Act {
	return func(x *Exchange) {
		body, _ := io.ReadAll(x.r.Body)
		x.r.Body = io.NopCloser(bytes.NewReader(body))
		if res, err := x.send(); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		x.r.Body = io.NopCloser(bytes.NewReader(body))
		x.Forward()
	}
}

// HalfAnswer breaks the connection in the middle of the answer's body.
func HalfAnswer() Act {
	return func(x *Exchange) {
		res, err := x.send()
		if err != nil {
			x.Reset()
			return
		}
		defer res.Body.Close()
		x.head(res)
		_, _ = io.CopyN(x.w, res.Body, res.ContentLength/2)
		_ = http.NewResponseController(x.w).Flush()
		x.Reset()
	}
}

// WrongBytes changes a bit in the middle of the answer's body.
func WrongBytes() Act {
	return func(x *Exchange) {
		res, err := x.send()
		if err != nil {
			x.Reset()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if len(body) > 0 {
			body[len(body)/2] ^= 1
		}
		x.head(res)
		_, _ = x.w.Write(body)
	}
}

// WrongUpload changes a bit in the middle of the request's body.
func WrongUpload() Act {
	return func(x *Exchange) {
		body, _ := io.ReadAll(x.r.Body)
		if len(body) > 0 {
			body[len(body)/2] ^= 1
		}
		x.r.Body = io.NopCloser(bytes.NewReader(body))
		x.Forward()
	}
}

// Silence reads the request and never answers.
func Silence() Act {
	return func(x *Exchange) {
		_, _ = io.Copy(io.Discard, x.r.Body)
		x.wait(time.Hour)
	}
}

// Deaf does not read the request's body and never answers.
func Deaf() Act { return func(x *Exchange) { x.wait(time.Hour) } }

// Stall stops in the middle of the answer's body.
func Stall() Act {
	return func(x *Exchange) {
		res, err := x.send()
		if err != nil {
			x.Reset()
			return
		}
		defer res.Body.Close()
		x.head(res)
		_, _ = io.CopyN(x.w, res.Body, res.ContentLength/2)
		_ = http.NewResponseController(x.w).Flush()
		x.wait(time.Hour)
	}
}

// Slow moves rate bytes a second in both directions.
func Slow(rate int) Act {
	return func(x *Exchange) {
		x.r.Body = struct {
			io.Reader
			io.Closer
		}{&slow{x, x.r.Body, rate}, x.r.Body}
		res, err := x.send()
		if err != nil {
			x.Reset()
			return
		}
		defer res.Body.Close()
		x.head(res)
		_, _ = io.Copy(flushing{x.w}, &slow{x, res.Body, rate})
	}
}

// Delay forwards after a time.
func Delay(d time.Duration) Act {
	return func(x *Exchange) {
		if x.wait(d) {
			x.Forward()
		}
	}
}

// slow is a reader of a few bytes at a time.
type slow struct {
	x    *Exchange
	r    io.Reader
	rate int // bytes a second
}

func (s *slow) Read(p []byte) (int, error) {
	const perSecond = 20
	if !s.x.wait(time.Second / perSecond) {
		return 0, errEnded
	}
	return s.r.Read(p[:min(len(p), max(1, s.rate/perSecond))])
}

// flushing sends what is written at once.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	_ = http.NewResponseController(f.w).Flush()
	return n, err
}
