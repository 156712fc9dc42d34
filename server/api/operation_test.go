package api

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestOperations makes a backup, cancels an import that waits for its source, and finds both among the operations.
func TestOperations(t *testing.T) {
	w := start(t)
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	b := get[wire.Backup](t, w.do(t, request{method: "POST", path: "/databases/" + db.ID + "/backups", key: w.org.full}))
	op := get[[]wire.Operation](t, w.do(t, request{method: "GET", path: "/operations?type=backup", key: w.org.read}))[0]
	if op.DatabaseID != db.ID || *op.BackupID != b.ID {
		t.Errorf("%+v", op)
	}
	op = get[wire.Operation](t, w.do(t, request{method: "GET", path: "/operations/" + op.ID + "?wait=60s", key: w.org.read}))
	if op.Status != wire.OperationCompleted || op.ProgressPercent != 100 {
		t.Errorf("after the wait: %+v", op)
	}
	if got := w.do(t, request{method: "POST", path: "/operations/" + op.ID + "/cancel", key: w.org.full}); got.status != 409 {
		t.Errorf("cancelled after the end: %d %s", got.status, got.text)
	}
	if got := w.do(t, request{method: "GET", path: "/operations/" + op.ID, key: w.other.full}); got.status != 404 {
		t.Errorf("another organization's: %d", got.status)
	}
	for _, wait := range []string{"0s", "61s", "1m", "1.5s", "-1s", "30"} {
		if got := w.do(t, request{method: "GET", path: "/operations/" + op.ID + "?wait=" + wait, key: w.org.read}); got.status != 422 || !strings.HasPrefix(got.msg, "wait: ") {
			t.Errorf("wait=%s: %d %s", wait, got.status, got.msg)
		}
	}
	t.Run("import", func(t *testing.T) { testCancelImport(t, w) })
}

// silentSource accepts connections and never answers.
func silentSource(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted sync.WaitGroup
	accepted.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	})
	t.Cleanup(func() { _ = l.Close(); accepted.Wait() })
	return l.Addr().String()
}

func testCancelImport(t *testing.T, w *world) {
	source := silentSource(t)
	i := get[wire.ImportDetail](t, w.do(t, request{
		method: "POST", path: "/imports", key: w.org.full,
		body: `{"project":"` + w.org.project + `","name":"copied","source_url":"postgres://u:p@` + source + `/d"}`,
	}))
	op := get[[]wire.Operation](t, w.do(t, request{method: "GET", path: "/operations?status=running&database_id=" + i.DatabaseID, key: w.org.read}))[0]
	cancel := "/operations/" + op.ID + "/cancel"
	if got := w.do(t, request{method: "POST", path: cancel, key: w.org.read}); got.status != 403 || !strings.Contains(got.msg, "database:create") {
		t.Errorf("cancelled by a reader: %d %s", got.status, got.msg)
	}
	starter := w.key(t, w.org.organization, access.NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead, model.ScopeDatabaseCreate}})
	began := time.Now()
	got := get[wire.Operation](t, w.do(t, request{method: "POST", path: cancel, key: starter}))
	if got.Status != wire.OperationCancelled || got.CancelledBy == nil || *got.CancelledBy.Name != "test custom" || !strings.Contains(*got.Error, "cancelled by") {
		t.Errorf("after %s: %+v", time.Since(began), got)
	}
	again := get[wire.Operation](t, w.do(t, request{method: "POST", path: cancel, key: starter}))
	if again.Status != wire.OperationCancelled {
		t.Errorf("again: %+v", again)
	}
	record := get[wire.ImportDetail](t, w.do(t, request{method: "GET", path: "/imports/" + i.ID, key: w.org.read}))
	if record.Status != wire.ImportFailed || !strings.Contains(*record.Error, "cancelled by") {
		t.Errorf("%+v", record)
	}
	if got := w.do(t, request{method: "GET", path: "/databases/" + i.DatabaseID, key: w.org.read}); got.status != 404 {
		t.Errorf("its database: %d", got.status)
	}
}

// TestDatabaseInsight reads the log and the metrics of a database, and has it exported.
func TestDatabaseInsight(t *testing.T) {
	w := start(t, func(c *core.Config) { c.Exports = true })
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	conn, err := connect(t, db.Credentials.ConnectionURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "select * from nothing_here"); err == nil {
		t.Error("a missing table was read")
	}
	path := "/databases/" + db.ID
	var log wire.DatabaseLog
	testenv.Eventually(t, "the error in the log", func() bool {
		log = get[wire.DatabaseLog](t, w.do(t, request{method: "GET", path: path + "/log?level=ERROR&search=Nothing_Here", key: w.org.full}))
		return len(log.Lines) > 0
	})
	if len(log.Lines) != 1 || log.Lines[0].At == nil || *log.Lines[0].Level != "ERROR" || !strings.Contains(log.Lines[0].Text, "nothing_here") {
		t.Errorf("%+v", log)
	}
	if next := get[wire.DatabaseLog](t, w.do(t, request{method: "GET", path: path + "/log?search=nothing_here&after=" + log.Cursor, key: w.org.full})); len(next.Lines) != 0 {
		t.Errorf("the same lines again: %+v", next)
	}
	waited := make(chan wire.DatabaseLog, 1)
	go func() {
		waited <- get[wire.DatabaseLog](t, w.do(t, request{method: "GET", path: path + "/log?search=nor_here&wait=60s&after=" + log.Cursor, key: w.org.full}))
	}()
	if _, err := conn.Exec(t.Context(), "select * from nor_here"); err == nil {
		t.Error("a missing table was read")
	}
	if next := <-waited; len(next.Lines) == 0 || !strings.Contains(next.Lines[0].Text, "nor_here") {
		t.Errorf("waited for a line: %+v", next)
	}
	if log := get[wire.DatabaseLog](t, w.do(t, request{method: "GET", path: path + "/log?until=2020-01-31T12:00:00Z", key: w.org.full})); len(log.Lines) != 0 {
		t.Errorf("before the beginning: %+v", log)
	}
	if got := w.do(t, request{method: "GET", path: path + "/log", key: w.org.read}); got.status != 403 {
		t.Errorf("the log for a reader: %d", got.status)
	}
	for _, query := range []string{"level=error", "limit=1001", "after=nonsense", "after=1-01", "wait=61s", "since=now", "since=2030-01-31T12:00:00Z&until=2030-01-31T12:00:00Z"} {
		if got := w.do(t, request{method: "GET", path: path + "/log?" + query, key: w.org.full}); got.status != 422 {
			t.Errorf("%s: %d", query, got.status)
		}
	}
	var month wire.Metrics
	testenv.Eventually(t, "the first sample", func() bool {
		month = get[wire.Metrics](t, w.do(t, request{method: "GET", path: path + "/metrics?range=month", key: w.org.read}))
		return len(month.Samples) > 0
	})
	if month.StepSeconds != 3600 || month.Range != wire.MetricsMonth {
		t.Errorf("%+v", month)
	}
	x := get[wire.Export](t, w.do(t, request{method: "POST", path: path + "/export", key: w.org.full}))
	if x.ID == "" || x.Status == wire.ExportFailed {
		t.Errorf("%+v", x)
	}
}
