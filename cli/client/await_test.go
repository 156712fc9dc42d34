package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// script gives one response per request: "200 {…}", "400 code", "502 <html>"
// for a response that is not the API's, or "" for a broken connection. It
// records when each request was made.
type script struct {
	answers []string
	asked   []time.Duration
	start   time.Time
}

func (s *script) client(t *testing.T) *client.Client {
	s.start = time.Now()
	return newClient(t, "http://appliance.test", "key", carrier(func(*http.Request) *http.Response {
		s.asked = append(s.asked, time.Since(s.start))
		answer := s.answers[min(len(s.asked), len(s.answers))-1]
		if answer == "" {
			return nil
		}
		var status int
		head, rest, _ := strings.Cut(answer, " ")
		fmt.Sscan(head, &status)
		header := http.Header{}
		if status == http.StatusTooManyRequests {
			header.Set("Retry-After", "20")
		}
		body := fmt.Sprintf(`{"error":{"code":%q,"message":"no"},"meta":{}}`, rest)
		switch {
		case strings.HasPrefix(rest, "<"):
			body = rest
		case status == http.StatusOK:
			body = `{"data":` + rest + `,"meta":{}}`
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
	}))
}

// TestAwaitDeviceToken runs the device's part of RFC 8628 in a synctest bubble.
func TestAwaitDeviceToken(t *testing.T) {
	t.Parallel()
	const pending, slow, key = "400 authorization_pending", "400 slow_down", `200 {"api_key":"k"}`
	for name, c := range map[string]struct {
		answers []string
		asked   []int // seconds
		code    wire.ErrorCode
	}{
		"approved":                 {[]string{pending, pending, key}, []int{5, 10, 15}, ""},
		"slow_down adds 5 seconds": {[]string{slow, pending, slow, key}, []int{5, 15, 25, 40}, ""},
		"denied":                   {[]string{pending, "400 access_denied"}, []int{5, 10}, wire.CodeAccessDenied},
		"expired there":            {[]string{"400 expired_token"}, []int{5}, wire.CodeExpiredToken},
		"expired here":             {[]string{pending}, []int{5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60}, wire.CodeExpiredToken},
		"throttled":                {[]string{"429 rate_limited", key}, []int{5, 25}, ""},
		"broken connections":       {[]string{"", "", key}, []int{5, 15, 35}, ""},
		"restarting":               {[]string{"500 internal_error", key}, []int{5, 15}, ""},
		"behind a proxy":           {[]string{"502 <html>", pending, "504 <html>", key}, []int{5, 15, 25, 45}, ""},
		"refused":                  {[]string{"403 forbidden"}, []int{5}, wire.CodeForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				token, err := s.client(t).AwaitDeviceToken(t.Context(), wire.DeviceCodes{DeviceCode: "d", ExpiresIn: 60, Interval: 5})
				if client.CodeOf(err) != c.code || (token.APIKey == "k") != (c.code == "") {
					t.Errorf("%+v, %v", token, err)
				}
				var asked []int
				for _, at := range s.asked {
					asked = append(asked, int(at.Seconds()))
				}
				if !slices.Equal(asked, c.asked) {
					t.Errorf("asked after %v seconds, not %v", asked, c.asked)
				}
			})
		})
	}
}

func TestAwaitDeviceTokenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		s := &script{answers: []string{"400 authorization_pending"}}
		_, err := s.client(t).AwaitDeviceToken(ctx, wire.DeviceCodes{DeviceCode: "d", ExpiresIn: 900})
		if !errors.Is(err, context.DeadlineExceeded) || len(s.asked) != 1 {
			t.Errorf("%v after %d polls", err, len(s.asked))
		}
	})
}

// TestAwait waits for a backup while the appliance restarts.
func TestAwait(t *testing.T) {
	t.Parallel()
	const running, completed = `200 {"status":"running","progress_percent":40}`, `200 {"status":"completed"}`
	for name, c := range map[string]struct {
		answers []string
		ok      bool
	}{
		"at once":         {[]string{completed}, true},
		"a restart":       {[]string{running, "", "", "500 internal_error", "429 rate_limited", running, completed}, true},
		"a failed backup": {[]string{running, `200 {"status":"failed"}`}, true},
		"behind a proxy":  {[]string{running, "502 <html>", "503 <html>", "504 <html>", completed}, true},
		"another program": {[]string{running, "404 <html>"}, false},
		"never again":     {[]string{running, "502 <html>"}, false},
		"gone":            {[]string{running, "404 not_found"}, false},
		"never back":      {[]string{running, ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				seen := 0
				b, err := s.client(t).AwaitBackup(t.Context(), "db_1", "bkp_1", func(wire.Backup) { seen++ })
				if (err == nil) != c.ok || c.ok && b.Status == wire.BackupRunning {
					t.Errorf("%+v, %v", b, err)
				}
				if seen == 0 && name != "at once" {
					t.Error("nobody was told how far it is")
				}
			})
		})
	}
}

// TestAwaitExport waits for the export of the newest backup, not for exports
// that are made meanwhile.
func TestAwaitExport(t *testing.T) {
	t.Parallel()
	export := func(id, status, newer string) string {
		return fmt.Sprintf(`200 {"id":%q,"status":%q,"newer":%s}`, id, status, newer)
	}
	next := func(id, status string) string { return fmt.Sprintf(`{"id":%q,"status":%q}`, id, status) }
	for name, c := range map[string]struct {
		answers []string
		id      string
	}{
		"the first":                {[]string{export("x1", "pending", "null"), export("x1", "running", "null"), export("x1", "ready", "null")}, "x1"},
		"none under way":           {[]string{export("x1", "ready", "null")}, "x1"},
		"one under way":            {[]string{export("x1", "ready", next("x2", "running")), export("x2", "ready", "null")}, "x2"},
		"another has come":         {[]string{export("x1", "ready", next("x2", "pending")), export("x2", "ready", next("x3", "pending"))}, "x2"},
		"an older one comes first": {[]string{export("x2", "pending", "null"), export("x1", "ready", next("x2", "pending")), export("x2", "ready", "null")}, "x2"},
		"failed":                   {[]string{export("x1", "ready", next("x2", "running")), export("x1", "ready", next("x2", "failed"))}, "x1"},
		"the first has failed":     {[]string{export("x1", "running", "null"), export("x1", "failed", "null")}, "x1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				x, err := s.client(t).AwaitExport(t.Context(), "db_1", nil)
				if err != nil || x.ID != c.id || len(s.asked) != len(c.answers) {
					t.Errorf("%+v after %d polls, %v", x, len(s.asked), err)
				}
			})
		})
	}
}

// TestAwaitOperation follows an operation while the appliance restarts.
func TestAwaitOperation(t *testing.T) {
	t.Parallel()
	state := func(status string) string {
		return "event: operation\ndata: {\"id\":\"op_1\",\"status\":\"" + status + "\"}\n\n"
	}
	for name, c := range map[string]struct {
		answers []string // streams, or refusals
		status  wire.OperationStatus
		code    wire.ErrorCode
	}{
		"completed":       {[]string{state("pending") + ":\n\n" + state("running") + state("completed")}, wire.OperationCompleted, ""},
		"a restart":       {[]string{state("running"), "", "500 internal_error", state("running") + state("completed")}, wire.OperationCompleted, ""},
		"cut in the line": {[]string{"event: operation\ndata: {", state("completed")}, wire.OperationCompleted, ""},
		"failed":          {[]string{state("failed")}, wire.OperationFailed, ""},
		"cancelled":       {[]string{state("running"), state("cancelled")}, wire.OperationCancelled, ""},
		"deleted":         {[]string{state("running"), "404 not_found"}, "", wire.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				appliance := newClient(t, "http://appliance.test", "key", carrier(func(*http.Request) *http.Response {
					answer := c.answers[min(asked, len(c.answers)-1)]
					asked++
					status, code := http.StatusOK, ""
					if n, _ := fmt.Sscanf(answer, "%d %s", &status, &code); n == 2 {
						answer = fmt.Sprintf(`{"error":{"code":%q,"message":"no"},"meta":{}}`, code)
					}
					return &http.Response{
						StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(answer)),
					}
				}))
				op, err := appliance.AwaitOperation(t.Context(), wire.Operation{ID: "op_1", DatabaseID: "db_1"}, nil)
				if client.CodeOf(err) != c.code || c.code == "" && op.Status != c.status {
					t.Errorf("%+v, %v", op, err)
				}
			})
		})
	}
}

// TestSilentAppliance checks that the client gives up on a response that does
// not start or that stalls, but not on one that takes long to produce.
func TestSilentAppliance(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
	get := func(ctx context.Context, c *client.Client) error { _, err := c.GetUsage(ctx); return err }
	download := func(ctx context.Context, c *client.Client) error {
		body, err := c.OpenDownload(ctx, "http://appliance.test/x", "", 0)
		if err != nil {
			return err
		}
		defer body.Close()
		time.Sleep(time.Hour) // the caller may be slow
		_, err = io.ReadAll(body)
		return err
	}
	for name, c := range map[string]struct {
		says string // what the appliance sends at once
		do   func(context.Context, *client.Client) error
		ends time.Duration
	}{
		"no answer":           {"", get, time.Minute},
		"half an answer":      {head + `{"data"`, get, time.Minute},
		"no answer to a poll": {"", func(ctx context.Context, c *client.Client) error { _, err := c.GetDeviceToken(ctx, "d"); return err }, time.Minute},
		"no download":         {"", download, time.Minute},
		"half a download":     {head + "hello", download, time.Hour + time.Minute},
		"a whole download":    {head + "hello world", download, time.Hour},
		"what takes its time": {"", func(ctx context.Context, c *client.Client) error {
			_, err := c.RestartDatabase(ctx, "db_1")
			return err
		}, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						defer far.Close()
						if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
							_, _ = io.WriteString(far, c.says)
						}
						_, _ = io.Copy(io.Discard, far) // until the client disconnects
					}()
					return near, nil
				}}
				start := time.Now()
				err := c.do(ctx, newClient(t, "http://appliance.test", "key", transport))
				if took := time.Since(start); took != c.ends || (err == nil) != (name == "a whole download") {
					t.Errorf("after %s: %v", took, err)
				}
				if c.ends != 2*time.Hour && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("as if by the caller: %v", err)
				}
			})
		})
	}
}
