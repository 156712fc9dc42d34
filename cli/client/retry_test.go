package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// scripted answers requests one after the other: a status, 0 for a broken connection, or -1 for none.
type scripted struct {
	statuses []int
	after    string // Retry-After
	keys     []string
	bodies   []string
	times    []time.Time
}

// RoundTrip implements http.RoundTripper.
func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		body = string(text)
	}
	s.keys, s.bodies, s.times = append(s.keys, r.Header.Get("Idempotency-Key")), append(s.bodies, body), append(s.times, time.Now())
	status := s.statuses[min(len(s.keys), len(s.statuses))-1]
	switch status {
	case 0:
		return nil, errConnection
	case -1:
		return nil, &net.OpError{Op: "dial", Err: errConnection}
	}
	answer := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"data":{},"meta":{}}`))}
	if status != http.StatusOK {
		answer.Body = io.NopCloser(strings.NewReader(`{"error":{"code":"rate_limited","message":"m"},"meta":{}}`))
		answer.Header.Set("Retry-After", s.after)
	}
	return answer, nil
}

// TestRetries: a request is sent again if that is safe, as the same request, and not sooner than the response asks.
func TestRetries(t *testing.T) {
	t.Parallel()
	create := func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateBucket(ctx, wire.CreateBucket{Project: "p", Name: "files"})
		return err
	}
	change := func(ctx context.Context, c *client.Client) error {
		_, err := c.UpdateBucket(ctx, "bucket_1", wire.UpdateBucket{})
		return err
	}
	read := func(ctx context.Context, c *client.Client) error {
		_, err := c.GetBucket(ctx, "bucket_1")
		return err
	}
	replace := func(ctx context.Context, c *client.Client) error {
		_, err := c.ReplaceDatabaseAllowlist(ctx, "db_1", wire.ReplaceAllowlist{})
		return err
	}
	replaceKnown := func(ctx context.Context, c *client.Client) error {
		return replace(client.WithIfMatch(ctx, `"known"`), c)
	}
	remove := func(ctx context.Context, c *client.Client) error {
		_, err := c.DeleteObject(ctx, "bucket_1", "a", "")
		return err
	}
	for name, test := range map[string]struct {
		do       func(context.Context, *client.Client) error
		statuses []int
		after    string
		retries  int
		sent     int
		atLeast  time.Duration
		fails    bool
	}{
		"no retries":                {read, []int{503}, "", 0, 1, 0, true},
		"a restart":                 {read, []int{0, 503, 200}, "", 3, 3, 0, false},
		"a budget":                  {create, []int{429, 200}, "7", 3, 2, 7 * time.Second, false},
		"a budget that takes hours": {create, []int{429, 200}, "7200", 3, 1, 0, true},
		"an answer that is lost":    {create, []int{0, 200}, "", 3, 2, 0, false},
		"a change that may be done": {change, []int{0, 200}, "", 3, 1, 0, true},
		"a change that was not":     {change, []int{429, 200}, "1", 3, 2, time.Second, false},
		"a whole new value":         {replace, []int{0, 503, 200}, "", 3, 3, 0, false},
		"a value for a known one":   {replaceKnown, []int{0, 200}, "", 3, 1, 0, true},
		"a deletion, perhaps done":  {remove, []int{0, 200}, "", 3, 1, 0, true},
		"a proxy at a deletion":     {remove, []int{504, 200}, "", 3, 1, 0, true},
		"a deletion that was not":   {remove, []int{429, -1, 200}, "1", 3, 3, time.Second, false},
		"a change that was unsent":  {change, []int{-1, 200}, "", 3, 2, 0, false},
		"a refusal":                 {create, []int{403, 200}, "", 3, 1, 0, true},
		"no end":                    {read, []int{503}, "", 2, 3, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{statuses: test.statuses, after: test.after}
				c, err := client.New(client.Config{URL: "http://appliance.test", Key: "key", HTTP: s, Retries: test.retries})
				if err != nil {
					t.Fatal(err)
				}
				err = test.do(t.Context(), c)
				if (err != nil) != test.fails || len(s.keys) != test.sent || s.times[len(s.times)-1].Sub(s.times[0]) < test.atLeast {
					t.Fatalf("%v, sent %d times at %v", err, len(s.keys), s.times)
				}
				for i := range s.keys {
					if s.keys[i] != s.keys[0] || s.bodies[i] != s.bodies[0] {
						t.Errorf("the repetition has the key %q and the body %q, not %q and %q", s.keys[i], s.bodies[i], s.keys[0], s.bodies[0])
					}
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{statuses: []int{503}}
		c, err := client.New(client.Config{URL: "http://appliance.test", Key: "key", HTTP: s, Retries: 1000})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := read(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beyond the deadline: %v", err)
		}
	})
}
