package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// followed asks for a page as EventSource does.
func (c *console) followed(t *testing.T, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	answer, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// TestLivePagesAreFollowed: a page with something under way says when it is another, and ends with what it shows. Any
// other page says that there is nothing to follow.
func TestLivePagesAreFollowed(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	if got := c.followed(t, "/keys"); got.StatusCode != http.StatusNoContent {
		t.Errorf("/keys: %s", got.Status)
	}
	if got := c.followed(t, "/databases/db_nonesuch"); got.StatusCode != http.StatusNotFound {
		t.Errorf("what is not there: %s", got.Status)
	}
	got := c.followed(t, "/databases/db_busy/settings")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if is := got.Header.Get(name); is != want {
			t.Fatalf("%s: %q", name, is)
		}
	}
	lines := bufio.NewScanner(got.Body)
	changes := 0
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data: ") {
			continue
		}
		if changes++; changes > 1 {
			continue
		}
		if err := c.engine.Core.Meta.Update(func(tx *meta.Tx) error {
			return tx.Databases().Change("db_busy", func(d *model.Database) { d.Status, d.Operation = model.DatabaseFailed, "" })
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil || changes < 2 {
		t.Errorf("%d changes, %v", changes, err)
	}
}

// TestFollowedPagesKeepTheirInterval: a page that has always changed already is rendered anew no more often than others,
// and is not waited for once the browser is gone.
func TestFollowedPagesKeepTheirInterval(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	req := &request{pages: &pages{engine: c.engine}, r: httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(ctx)}
	a := answer{wait: func(time.Duration) bool { return true }}
	began := time.Now()
	if !req.pause(a) || time.Since(began) < liveInterval {
		t.Errorf("waited %s", time.Since(began))
	}
	cancel()
	if began = time.Now(); !req.pause(a) || time.Since(began) >= liveInterval {
		t.Errorf("waited %s after the browser was gone", time.Since(began))
	}
}
