package api

import (
	"testing"
	"time"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestDatabaseSessions lists the sessions of a database, cancels a statement and ends a session.
func TestDatabaseSessions(t *testing.T) {
	w := start(t)
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	conn, err := connect(t, db.Credentials.ConnectionURL)
	if err != nil {
		t.Fatal(err)
	}
	path := "/databases/" + db.ID + "/sessions"
	list := func(key string) []wire.DatabaseSession {
		return get[wire.DatabaseSessions](t, w.do(t, request{method: "GET", path: path, key: key})).Sessions
	}
	slept := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "select 'a secret', pg_sleep(600)")
		slept <- err
	}()
	var s wire.DatabaseSession
	testenv.Eventually(t, "the statement", func() bool {
		all := list(w.org.full)
		if len(all) != 1 { // the appliance's own are not listed
			t.Fatalf("%+v", all)
		}
		s = all[0]
		return *s.State == "active" && s.Wait != nil && *s.Wait == "PgSleep"
	})
	if s.User != "app" || *s.ClientAddress != "127.0.0.1" || *s.Query != "select 'a secret', pg_sleep(600)" || s.TransactionSince == nil {
		t.Errorf("%+v", s)
	}
	if s := list(w.org.read)[0]; s.Query != nil || s.User != "app" {
		t.Errorf("for a reader: %+v", s)
	}
	act := func(key, id, what string) reply {
		return w.do(t, request{method: "POST", path: path + "/" + id + "/" + what, key: key})
	}
	for _, refused := range []struct {
		key, id string
		status  int
	}{
		{w.org.read, s.ID, 403},
		{w.other.full, s.ID, 404},
		{w.org.full, "1-1", 404},
		{w.org.full, "x", 404},
		{w.org.full, "0" + s.ID, 404},
		{w.org.full, s.ID + "0", 404}, // another start is another session
	} {
		for _, what := range []string{"cancel", "terminate"} {
			if got := act(refused.key, refused.id, what); got.status != refused.status {
				t.Errorf("%s %s: %d %s", what, refused.id, got.status, got.text)
			}
		}
	}
	if got := get[wire.SignalledSession](t, act(w.org.full, s.ID, "cancel")); got.Ended || got.ID != s.ID {
		t.Errorf("%+v", got)
	}
	select {
	case err := <-slept:
		if err == nil || conn.Ping(t.Context()) != nil {
			t.Errorf("after the cancellation: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the statement was not cancelled")
	}
	if got := get[wire.SignalledSession](t, act(w.org.full, s.ID, "terminate")); !got.Ended {
		t.Errorf("%+v", got)
	}
	if conn.Ping(t.Context()) == nil || len(list(w.org.full)) != 0 {
		t.Error("the session goes on")
	}
	if got := act(w.org.full, s.ID, "terminate"); got.status != 404 {
		t.Errorf("again: %d", got.status)
	}
}
