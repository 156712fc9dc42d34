package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// listen opens a stream and returns its messages; the channel is closed at its end.
func (w *world) listen(t *testing.T, path, key, after string) <-chan map[string]string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", w.server.URL+Prefix+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := res.Header.Get(name); got != want || res.StatusCode != http.StatusOK {
			t.Fatalf("%d, %s: %q", res.StatusCode, name, got)
		}
	}
	messages := make(chan map[string]string, 100)
	go func() {
		defer close(messages)
		defer res.Body.Close()
		message := map[string]string{}
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			if lines.Text() == "" {
				if message["data"] != "" {
					messages <- message
				}
				message = map[string]string{}
				continue
			}
			message[field] = value
		}
	}()
	return messages
}

// next returns the next message of a stream, nil at its end.
func next(t *testing.T, messages <-chan map[string]string) map[string]string {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
		return nil
	}
}

func eventOf(t *testing.T, m map[string]string) (e wire.Event) {
	t.Helper()
	if err := json.Unmarshal([]byte(m["data"]), &e); err != nil || e.ID != m["id"] {
		t.Fatalf("%v: %v", m, err)
	}
	return e
}

// TestEvents follows the events of an organization: by scope, by type, from where an earlier stream ended, until the
// key is revoked.
func TestEvents(t *testing.T) {
	w := open(t)
	narrow := w.key(t, w.org.organization, access.NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}})
	all, few, others := w.listen(t, "/events", w.org.read, ""), w.listen(t, "/events", narrow, ""), w.listen(t, "/events", w.other.full, "")
	happen := func(kind model.EventType) {
		w.engine.Core.Emit(model.Event{Type: kind, Organization: w.org.organization, Message: "it happened"})
	}
	happen(model.EventRecoveryGap)
	happen(model.EventDatabaseFailed)
	first := eventOf(t, next(t, all))
	if second := eventOf(t, next(t, all)); first.Type != "recovery.gap" || second.Type != "database.failed" {
		t.Errorf("%s, then %s", first.Type, second.Type)
	}
	if got := eventOf(t, next(t, few)); got.Type != "database.failed" {
		t.Errorf("without backup:list: %s", got.Type)
	}
	if got := eventOf(t, next(t, w.listen(t, "/events", w.org.read, first.ID))); got.Type != "database.failed" {
		t.Errorf("resumed with %s", got.Type)
	}
	if got := next(t, w.listen(t, "/events", w.org.read, "event_00000000000000000000000000")); got["event"] != "gap" {
		t.Errorf("after an event that is not kept: %v", got)
	}
	typed := w.listen(t, "/events?type=backup.*", w.org.read, "")
	happen(model.EventDatabaseRecovered)
	happen(model.EventBackupFailed)
	if got := eventOf(t, next(t, typed)); got.Type != "backup.failed" {
		t.Errorf("of backups: %s", got.Type)
	}
	select {
	case m := <-others:
		t.Errorf("another organization receives %v", m)
	default:
	}
	w.revoke(t, narrow)
	for m := range few {
		if e := eventOf(t, m); e.Type != "database.recovered" {
			t.Errorf("before the end: %s", e.Type)
		}
	}
	w.engine.Core.Watchers.End()
	for range all {
	}
	if got := w.do(t, request{method: "GET", path: "/events", key: w.org.read, header: map[string]string{"Last-Event-ID": "nonsense"}}); got.status != 422 {
		t.Errorf("a wrong id: %d", got.status)
	}
}

// TestQuietStreams resumes a stream that had no event yet where it was: it misses none, and tells nothing of others.
func TestQuietStreams(t *testing.T) {
	w := open(t)
	happen := func(of tenant) {
		w.engine.Core.Emit(model.Event{Type: model.EventDatabaseFailed, Organization: of.organization, Message: "it happened"})
	}
	happen(w.org)
	happen(w.other)
	position := w.position(t, "/events", w.org.read)
	if foreign := w.position(t, "/events", w.other.read); position >= foreign {
		t.Errorf("the stream stands at %s, and what happened elsewhere later at %s", position, foreign)
	}
	happen(w.org)
	if got := next(t, w.listen(t, "/events", w.org.read, position)); got["event"] == "gap" || eventOf(t, got).Type != "database.failed" {
		t.Errorf("after %s: %v", position, got)
	}
	if got := w.position(t, "/events?type=key.*", w.org.read); got <= position {
		t.Errorf("what the stream does not select left it at %s", got)
	}
}

// position returns the id in the first lines of a stream.
func (w *world) position(t *testing.T, path, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.server.URL+Prefix+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	id, found := strings.CutPrefix(strings.TrimSpace(line), "id: ")
	if err != nil || !found {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	return id
}

// TestOperationEvents follows a backup to its end.
func TestOperationEvents(t *testing.T) {
	w := start(t)
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	get[wire.Backup](t, w.do(t, request{method: "POST", path: "/databases/" + db.ID + "/backups", key: w.org.full}))
	op := get[[]wire.Operation](t, w.do(t, request{method: "GET", path: "/operations?type=backup", key: w.org.read}))[0]
	var last wire.Operation
	for m := range w.listen(t, "/operations/"+op.ID+"/events", w.org.read, "") {
		if err := json.Unmarshal([]byte(m["data"]), &last); err != nil || m["event"] != "operation" {
			t.Fatalf("%v: %v", m, err)
		}
	}
	if last.Status != wire.OperationCompleted || last.ProgressPercent != 100 {
		t.Errorf("it ended as %+v", last)
	}
	if got := w.do(t, request{method: "GET", path: "/operations/" + op.ID + "/events", key: w.other.full}); got.status != 404 {
		t.Errorf("another organization's: %d", got.status)
	}
}
