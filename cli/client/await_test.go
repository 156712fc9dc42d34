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
// for a response that is not the API's, the lines of a stream of events, or ""
// for a broken connection. It records when each request was made.
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
		case strings.Contains(answer, "\n"):
			status, body = http.StatusOK, answer
			header.Set("Content-Type", "text/event-stream")
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

// operationState is a message of the stream of op_1.
func operationState(status string) string {
	return "event: operation\ndata: {\"id\":\"op_1\",\"status\":\"" + status + "\"}\n\n"
}

// TestAwait waits for a backup while the appliance restarts.
func TestAwait(t *testing.T) {
	t.Parallel()
	const running, completed = `200 {"status":"running"}`, `200 {"status":"completed"}`
	const operations = `200 [{"id":"op_2","status":"failed","backup_id":"bkp_2"},{"id":"op_1","status":"running","backup_id":"bkp_1"}]`
	state := operationState
	for name, c := range map[string]struct {
		answers []string
		seen    int
		ok      bool
	}{
		"ended already":   {[]string{completed}, 0, true},
		"to its end":      {[]string{running, operations, state("running") + state("running") + state("completed"), completed}, 3, true},
		"a restart":       {[]string{"", running, "", "500 internal_error", operations, state("running"), "", "500 internal_error", "429 rate_limited", state("completed"), "", completed}, 2, true},
		"a failed backup": {[]string{running, operations, state("failed"), `200 {"status":"failed"}`}, 1, true},
		"behind a proxy":  {[]string{running, "502 <html>", operations, "503 <html>", "504 <html>", state("completed"), completed}, 1, true},
		"another program": {[]string{running, "404 <html>"}, 0, false},
		"never again":     {[]string{running, operations, "502 <html>"}, 0, false},
		"gone":            {[]string{running, operations, state("running"), "404 not_found"}, 1, false},
		"no operation":    {[]string{running, `200 []`}, 0, false},
		"no operations":   {[]string{running, "404 not_found", running}, 0, false},
		"ended too soon":  {[]string{running, operations, state("failed"), running}, 1, false},
		"never back":      {[]string{running, ""}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				seen := 0
				b, err := s.client(t).AwaitBackup(t.Context(), "db_1", "bkp_1", func(wire.Operation) { seen++ })
				if (err == nil) != c.ok || c.ok && (b.Status == wire.BackupRunning || len(s.asked) != len(c.answers)) || seen != c.seen {
					t.Errorf("%+v, %v after %d requests; %d states were passed on", b, err, len(s.asked), seen)
				}
			})
		})
	}
}

// TestAwaitImport waits for an import, whose database is gone when it has failed.
func TestAwaitImport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []string{
			`200 {"status":"copying","database_id":"db_1"}`, `200 [{"id":"op_1","status":"running"}]`, operationState("running"), "404 not_found", `200 {"status":"failed"}`,
		}}
		if i, err := s.client(t).AwaitImport(t.Context(), "imp_1", nil); err != nil || i.Status != wire.ImportFailed {
			t.Errorf("%+v, %v", i, err)
		}
	})
}

// TestAwaitExport waits for the export of the newest backup, not for exports
// that are made meanwhile.
func TestAwaitExport(t *testing.T) {
	t.Parallel()
	export := func(id, status, newer string) string {
		return fmt.Sprintf(`200 {"id":%q,"status":%q,"newer":%s}`, id, status, newer)
	}
	next := func(id, status string) string { return fmt.Sprintf(`{"id":%q,"status":%q}`, id, status) }
	event := func(database string) string { return `data: {"data":{"database_id":"` + database + "\"}}\n\n" }
	const begins = "id: event_1\n:\n\n"
	changes := begins + event("db_2") + event("db_1") + ":\n\n" + event("db_1")
	for name, c := range map[string]struct {
		answers []string
		id      string
	}{
		"the first":                {[]string{changes, export("x1", "pending", "null"), export("x1", "running", "null"), export("x1", "ready", "null")}, "x1"},
		"none under way":           {[]string{changes, export("x1", "ready", "null")}, "x1"},
		"one under way":            {[]string{changes, export("x1", "ready", next("x2", "running")), export("x2", "ready", "null")}, "x2"},
		"another has come":         {[]string{changes, export("x1", "ready", next("x2", "pending")), export("x2", "ready", next("x3", "pending"))}, "x2"},
		"an older one comes first": {[]string{changes, export("x2", "pending", "null"), export("x1", "ready", next("x2", "pending")), export("x2", "ready", "null")}, "x2"},
		"failed":                   {[]string{changes, export("x1", "ready", next("x2", "running")), export("x1", "ready", next("x2", "failed"))}, "x1"},
		"the first has failed":     {[]string{changes, export("x1", "running", "null"), export("x1", "failed", "null")}, "x1"},
		"a restart":                {[]string{"", begins, export("x1", "pending", "null"), "", begins, "500 internal_error", export("x1", "ready", "null")}, "x1"},
		"missing events":           {[]string{begins + "event: gap\ndata: {}\n\n", export("x1", "pending", "null"), export("x1", "ready", "null")}, "x1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				x, err := s.client(t).AwaitExport(t.Context(), "db_1", "", nil)
				if err != nil || x.ID != c.id || len(s.asked) != len(c.answers) {
					t.Errorf("%+v after %d requests, %v", x, len(s.asked), err)
				}
			})
		})
	}
}

// TestAwaitOperation follows an operation while the appliance restarts.
func TestAwaitOperation(t *testing.T) {
	t.Parallel()
	state := operationState
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

// TestQuietEvents follows events through lost connections while nothing happens for long. Each stream goes on where
// the last one was.
func TestQuietEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var after []string
		streams := []string{"id: event_1\n:\n\n", "id: event_2\n:\n\n", "event: gap\ndata: {}\n\n", "id: event_3\ndata: {\"id\":\"event_3\"}\n\n", ":\n\n"}
		appliance := newClient(t, "http://appliance.test", "key", carrier(func(r *http.Request) *http.Response {
			after = append(after, r.Header.Get("Last-Event-ID"))
			reader, writer := io.Pipe()
			go func() {
				defer writer.Close()
				_, _ = io.WriteString(writer, streams[min(len(after), len(streams))-1])
				for range 20 { // of which the client takes the rest as it comes
					time.Sleep(15 * time.Second)
					_, _ = io.WriteString(writer, ":\n\n")
				}
			}()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var got []string
		for e, err := range appliance.GetEvents(ctx, client.EventOptions{}) {
			switch {
			case errors.Is(err, client.ErrEventGap):
				got = append(got, "gap")
			case err != nil:
				got = append(got, err.Error())
			default:
				got = append(got, e.ID)
			}
		}
		if !slices.Equal(got, []string{"gap", "event_3", context.DeadlineExceeded.Error()}) {
			t.Errorf("received %v", got)
		}
		if len(after) < 6 || !slices.Equal(after[:6], []string{"", "event_1", "event_2", "event_2", "event_3", "event_3"}) {
			t.Errorf("the streams began after %q", after)
		}
	})
}

// TestCutEvents connects again less and less often to an appliance that ends each stream at once.
func TestCutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		appliance := newClient(t, "http://appliance.test", "key", carrier(func(*http.Request) *http.Response {
			asked++
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(":\n\n"))}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for range appliance.GetEvents(ctx, client.EventOptions{}) {
		}
		if asked > 350 {
			t.Errorf("%d requests in ten minutes", asked)
		}
	})
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
