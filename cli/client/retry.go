package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRetryAfter is the longest wait that a response can ask for. A longer one
	// is for the caller to decide about.
	maxRetryAfter = time.Minute
	firstWait     = 100 * time.Millisecond
	maxWait       = 10 * time.Second
)

// retrying is Do, and sends the request again as often as the client's Config
// says, if it failed in a way that may pass and sending it again is safe. A
// request that was refused for its rate (429), or was never sent, did nothing.
// Others may have been carried out: those are sent again only if that changes
// nothing more and gives the same answer, which an Idempotency-Key ensures for a
// POST.
func (c *Client) retrying(ctx context.Context, r Request) (*http.Response, error) {
	body, repeatable := r.Body.(*bytes.Reader)
	if r.Body != nil && !repeatable || c.retries == 0 {
		return c.Do(ctx, r)
	}
	if r.Method == http.MethodPost && !strings.HasPrefix(r.Path, "/device/") && r.Header.Get("Idempotency-Key") == "" {
		r.Header = r.Header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	wait := firstWait
	for left := c.retries; ; left-- {
		if body != nil {
			_, _ = body.Seek(0, io.SeekStart) // never fails
		}
		answer, err := c.Do(ctx, r)
		if left == 0 || ctx.Err() != nil || !r.mayRepeat(answer, err) {
			return answer, err
		}
		pause := max(wait, askedWait(answer))
		if pause > maxRetryAfter {
			return answer, err
		}
		if answer != nil {
			answer.Body.Close()
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		wait = min(2*wait, maxWait)
	}
}

// mayRepeat reports whether a request with this result may succeed when it is
// sent again, and whether that is safe.
func (r Request) mayRepeat(answer *http.Response, err error) bool {
	if err != nil {
		broken, _ := errors.AsType[*net.OpError](err)
		return r.idempotent() || broken != nil && broken.Op == "dial"
	}
	safe := r.idempotent()
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return safe
	case http.StatusConflict:
		return safe && r.Method == http.MethodPost && isUnderWay(answer)
	}
	return false
}

// idempotent reports whether sending a request twice is the same as sending it once.
// A second DELETE or conditional PUT is refused because of the first, and it may
// delete or replace what somebody else has put there since.
func (r Request) idempotent() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPut:
		return r.Header.Get("If-Match") == ""
	default:
		return r.Header.Get("Idempotency-Key") != ""
	}
}

// isUnderWay reports whether a response says that the request with the same
// Idempotency-Key has not ended, such as one whose connection broke. The body
// stays readable.
func isUnderWay(answer *http.Response) bool {
	const longest = 64 << 10
	text, err := io.ReadAll(io.LimitReader(answer.Body, longest))
	rest := answer.Body
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), rest), rest}
	return err == nil && bytes.Contains(text, []byte("Idempotency-Key: the first request with this key is still under way"))
}

// askedWait returns how long a response asks to wait, 0 if it does not.
func askedWait(answer *http.Response) time.Duration {
	if answer == nil {
		return 0
	}
	text := answer.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second)+1)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}
