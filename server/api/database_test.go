package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// start creates a world with PostgreSQL.
func start(tb testing.TB, change ...func(*core.Config)) *world {
	tb.Helper()
	bin := postgrestest.Binaries(tb)
	cfg := core.Config{}
	w := open(tb, append(change, func(c *core.Config) {
		c.Search = binaries.Search{Explicit: bin.Dir}
		cfg = *c
	})...)
	w.dataDir = cfg.DataDir
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	postgrestest.LinkTemplate(tb, bin, filepath.Join(w.dataDir, "warm"))
	if err := w.engine.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	return w
}

func (w *world) createDatabase(tb testing.TB, body string) wire.CreatedDatabase {
	tb.Helper()
	return get[wire.CreatedDatabase](tb, w.do(tb, request{method: "POST", path: "/databases", key: w.org.full, body: body}))
}

// connect opens a session with a connection URL.
func connect(tb testing.TB, url string) (*pgx.Conn, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// TestDatabaseLife covers everything that the API can do to a database.
func TestDatabaseLife(t *testing.T) {
	w := start(t)
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop","db_user":"owner","password":"correct horse/battery"}`)
	path := "/databases/" + db.ID
	if db.Status != wire.DatabaseAvailable || db.DBUser != "owner" || db.Credentials.Password != "correct horse/battery" {
		t.Errorf("%+v", db)
	}
	conn, err := connect(t, db.Credentials.ConnectionURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table t (i int); insert into t select generate_series(1, 100)"); err != nil {
		t.Fatal(err)
	}

	t.Run("name taken", func(t *testing.T) {
		got := w.do(t, request{method: "POST", path: "/databases", key: w.org.full, body: `{"project":"` + w.org.project + `","name":"shop"}`})
		if got.status != 409 {
			t.Errorf("%d %s", got.status, got.text)
		}
	})
	t.Run("list", func(t *testing.T) {
		list := get[[]wire.Database](t, w.do(t, request{method: "GET", path: "/databases", key: w.org.read}))
		if len(list) != 1 || list[0].ID != db.ID {
			t.Errorf("%+v", list)
		}
	})
	t.Run("connection", func(t *testing.T) { testConnection(t, w, path) })
	t.Run("ssl", func(t *testing.T) {
		ssl := get[wire.SSL](t, w.do(t, request{method: "GET", path: path + "/ssl", key: w.org.read}))
		if !ssl.Enabled || len(ssl.Certificate.SANs) == 0 || !strings.Contains(ssl.CACertificate, "CERTIFICATE") {
			t.Errorf("%+v", ssl)
		}
	})
	t.Run("allowlist", func(t *testing.T) {
		set := get[wire.Allowlist](t, w.do(t, request{method: "PUT", path: path + "/allowlist", key: w.org.full, body: `{"entries":["127.0.0.1","127.0.0.1/32","::1","10.0.0.0/8"]}`}))
		seen := get[wire.Allowlist](t, w.do(t, request{method: "GET", path: path + "/allowlist", key: w.org.read}))
		if got := strings.Join(seen.Entries, " "); got != "127.0.0.1 ::1 10.0.0.0/8" || len(set.Entries) != 3 {
			t.Errorf("entries %s", got)
		}
	})
	t.Run("rls", func(t *testing.T) {
		set := get[wire.RLSTable](t, w.do(t, request{method: "POST", path: path + "/rls", key: w.org.full, body: `{"table":"t","enabled":true,"force":true}`}))
		seen := get[wire.RLS](t, w.do(t, request{method: "GET", path: path + "/rls", key: w.org.read}))
		if !set.RLSEnabled || !set.RLSForced || seen.Summary != (wire.RLSSummary{Total: 1, Enabled: 1, Forced: 1, WithoutPolicy: 1}) {
			t.Errorf("%+v, %+v", set, seen)
		}
		none := w.do(t, request{method: "POST", path: path + "/rls", key: w.org.full, body: `{"table":"none","enabled":true}`})
		if none.status != 404 {
			t.Errorf("unknown table: %d %s", none.status, none.text)
		}
	})
	t.Run("insight", func(t *testing.T) { testInsight(t, w, path, db.Credentials.ConnectionURL) })
	t.Run("extensions", func(t *testing.T) {
		set := get[wire.Extension](t, w.do(t, request{method: "POST", path: path + "/extensions", key: w.org.full, body: `{"name":"earthdistance"}`}))
		if set.InstalledVersion == nil || set.Schema != "extensions" || *set.Owner != "holdfast" || set.Unavailable != nil || set.NeedsRestart {
			t.Errorf("%+v", set)
		}
		found := map[string]wire.Extension{}
		for _, x := range get[wire.ExtensionList](t, w.do(t, request{method: "GET", path: path + "/extensions", key: w.org.read})).Extensions {
			found[x.Name] = x
		}
		if found["cube"].InstalledVersion == nil || found["dblink"].Class != wire.ExtensionForbidden || found["dblink"].Unavailable == nil || found["vector"].Notes == "" {
			t.Errorf("%+v, %+v", found["cube"], found["dblink"])
		}
		for _, step := range []struct {
			method, name string
			status       int
			says         string
		}{
			{"POST", "file_fdw", 403, "reads files"},
			{"POST", "cube", 200, ""}, // nothing to do
			{"DELETE", "cube", 409, "earthdistance"},
			{"DELETE", "earthdistance", 200, ""},
			{"DELETE", "earthdistance", 404, "no extension"},
			{"DELETE", "plpgsql", 404, "no extension"},
			{"DELETE", "cube", 200, ""},
		} {
			in := request{method: step.method, path: path + "/extensions", key: w.org.full, body: `{"name":"` + step.name + `"}`}
			if step.method == "DELETE" {
				in.path, in.body = in.path+"/"+step.name, ""
			}
			if got := w.do(t, in); got.status != step.status || !strings.Contains(got.msg, step.says) {
				t.Errorf("%s %s: %d %s", step.method, step.name, got.status, got.msg)
			}
		}
	})
	t.Run("recovery", func(t *testing.T) {
		r := get[wire.Recovery](t, w.do(t, request{method: "GET", path: path + "/recovery", key: w.org.full}))
		if r.PITREnabled || r.Status != wire.RecoveryWaiting || r.EarliestRestorableTime != nil {
			t.Errorf("%+v", r)
		}
		for body, status := range map[string]int{
			`{"target_lsn":"0/1"}`:            422, // there is no backup yet
			`{"target_lsn":"0/1","name":"x"}`: 422,
			`{}`:                              422,
		} {
			in := request{method: "POST", path: path + "/recovery/restore-request", key: w.org.full, body: body}
			if got := w.do(t, in); got.status != status {
				t.Errorf("%s: %d %s", body, got.status, got.text)
			}
		}
		undo := w.do(t, request{method: "POST", path: path + "/recovery/undo", key: w.org.full})
		if undo.status != 403 || undo.code != string(model.CodeForbidden) {
			t.Errorf("undo: %d %s", undo.status, undo.text)
		}
	})
	t.Run("password changed by SQL", func(t *testing.T) { testPasswordChanged(t, w, path) })
	t.Run("rotate", func(t *testing.T) { testRotate(t, w, path, db.Credentials.ConnectionURL) })
	t.Run("restart", func(t *testing.T) {
		if got := get[wire.Database](t, w.do(t, request{method: "POST", path: path + "/restart", key: w.org.full})); got.Status != wire.DatabaseAvailable {
			t.Errorf("%+v", got)
		}
	})
	t.Run("isolation", func(t *testing.T) {
		for _, r := range (&handlers{}).routes() {
			if !strings.HasPrefix(r.path, "/databases/{id}") {
				continue
			}
			target := strings.NewReplacer("{id}", db.ID, "{backupId}", "bkp_x").Replace(r.path)
			got := w.do(t, request{method: r.method, path: target, key: w.other.full, body: validBody(r, "")})
			if got.status != 404 || strings.Contains(got.text, "shop") {
				t.Errorf("%s %s: %d %s", r.method, target, got.status, got.text)
			}
		}
	})
	t.Run("status", func(t *testing.T) {
		status := get[wire.Status](t, w.do(t, request{method: "GET", path: "/agent/status", key: w.org.read}))
		if len(status.Databases) != 1 || len(status.Backups.Unprotected) != 1 || status.Usage.Metrics.Databases.Used != 1 || len(status.Recommendations) == 0 {
			t.Errorf("%+v", status)
		}
		all := w.do(t, request{method: "GET", path: "/agent/recommendations?limit=1", key: w.org.read})
		if len(get[[]wire.Recommendation](t, all)) != 1 {
			t.Errorf("%s", all.text)
		}
	})
	t.Run("delete", func(t *testing.T) {
		gone := get[wire.DeletedResource](t, w.do(t, request{method: "DELETE", path: path, key: w.org.full}))
		if !gone.Deleted || gone.ID != db.ID || gone.RecoverableUntil == nil {
			t.Errorf("%+v", gone)
		}
		if got := w.do(t, request{method: "GET", path: path, key: w.org.full}); got.status != 404 {
			t.Errorf("%d %s", got.status, got.text)
		}
	})
	if strings.Contains(w.log.String(), "correct horse") {
		t.Error("the log has a password")
	}
}

// testConnection checks that the URL has the same permissions as the key.
func testConnection(t *testing.T, w *world, path string) {
	for _, test := range []struct {
		key      string
		readOnly bool
	}{{w.org.developer, false}, {w.org.read, true}} {
		c := get[wire.Connection](t, w.do(t, request{method: "GET", path: path + "/connection", key: test.key}))
		if c.ReadOnly != test.readOnly || c.Environment.DatabaseURL != c.ConnectionURL || !strings.Contains(c.PsqlCommand, c.ConnectionURL) {
			t.Errorf("%+v", c)
		}
		if c.SSLMode != "prefer" || c.Environment.SSLMode != "" || strings.Contains(c.ConnectionURL, "?") {
			t.Errorf("loopback asks for TLS: %+v", c)
		}
		if want := c.ConnectionURL + "?sslmode=verify-full&sslrootcert=" + databases.DefaultCAFile; c.Drivers.Libpq != want {
			t.Errorf("%s, not %s", c.Drivers.Libpq, want)
		}
		conn, err := connect(t, c.ConnectionURL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "insert into t values (0)"); (err != nil) != test.readOnly {
			t.Errorf("insert as %s: %v", c.User, err)
		}
	}
	named := get[wire.Connection](t, w.do(t, request{method: "GET", path: path + "/connection?ca_file=/etc/a%20b.crt", key: w.org.read}))
	if !strings.HasSuffix(named.Drivers.Npgsql, `;Root Certificate="/etc/a b.crt"`) {
		t.Error(named.Drivers.Npgsql)
	}
	for _, file := range []string{"", "a%0Ab", "a%00b", "%FF", strings.Repeat("x", 1025)} {
		refused := w.do(t, request{method: "GET", path: path + "/connection?ca_file=" + file, key: w.org.read})
		if refused.status != 422 || !strings.Contains(refused.msg, "ca_file") {
			t.Errorf("ca_file=%.9s: %d %s", file, refused.status, refused.msg)
		}
	}
}

// testPasswordChanged checks that no response has a password that is not in force, until it is reset.
func testPasswordChanged(t *testing.T, w *world, path string) {
	ask := func() wire.Connection {
		return get[wire.Connection](t, w.do(t, request{method: "GET", path: path + "/connection", key: w.org.developer}))
	}
	stored := ask()
	if stored.Password == nil || stored.PasswordChangedOutside || stored.Message != nil {
		t.Fatalf("at first: %+v", stored)
	}
	exec(t, stored.ConnectionURL, "alter role "+stored.User+" password 'chosen by sql'")
	changed := ask()
	if changed.Password != nil || !changed.PasswordChangedOutside || changed.Message == nil || !strings.Contains(*changed.Message, "rotate-password") {
		t.Errorf("after the change: %+v", changed)
	}
	text := fmt.Sprintf("%+v", changed)
	if strings.Contains(text, *stored.Password) {
		t.Errorf("the replaced password is in %s", text)
	}
	own, err := url.Parse(stored.ConnectionURL)
	if err != nil {
		t.Fatal(err)
	}
	own.User = url.UserPassword(stored.User, "chosen by sql")
	exec(t, own.String(), "alter role "+stored.User+" password '"+strings.ReplaceAll(*stored.Password, "'", "''")+"'")
	if again := ask(); again.Password == nil || again.PasswordChangedOutside {
		t.Errorf("set back: %+v", again)
	}
}

func testRotate(t *testing.T, w *world, path, oldURL string) {
	rotated := get[wire.RotatedConnection](t, w.do(t, request{method: "POST", path: path + "/rotate-password", key: w.org.full, body: `{"terminate_sessions":true}`}))
	if rotated.SessionsTerminated < 1 || rotated.ReadOnly {
		t.Errorf("%+v", rotated)
	}
	if _, err := connect(t, rotated.ConnectionURL); err != nil {
		t.Error(err)
	}
	if _, err := connect(t, oldURL); err == nil {
		t.Error("the old password still works")
	}
}

// TestBackupAndRestore covers the backups of a database.
func TestBackupAndRestore(t *testing.T) {
	w := start(t)
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	path := "/databases/" + db.ID
	exec(t, db.Credentials.ConnectionURL, "create table t as select generate_series(1, 1000) i")
	b := get[wire.Backup](t, w.do(t, request{method: "POST", path: path + "/backups", key: w.org.full}))
	if b.Status != wire.BackupPending || b.SizeBytes != nil {
		t.Errorf("%+v", b)
	}
	b = await(t, func() (wire.Backup, bool) {
		b := get[wire.Backup](t, w.do(t, request{method: "GET", path: path + "/backups/" + b.ID, key: w.org.read}))
		return b, b.Status == wire.BackupCompleted || b.Status == wire.BackupFailed
	})
	if b.Status != wire.BackupCompleted || b.SizeBytes == nil {
		t.Fatalf("%s: %+v", text(b.Error), b)
	}
	pin := request{method: "POST", path: path + "/backups/" + b.ID + "/pin", key: w.org.full}
	if got := get[wire.Backup](t, w.do(t, pin)); !got.Pinned || got.PinnedAt == nil {
		t.Errorf("pinned: %+v", got)
	}
	if got := w.do(t, request{method: "DELETE", path: path + "/backups/" + b.ID, key: w.org.full}); got.status != 409 {
		t.Errorf("deleting a pinned backup: %d %s", got.status, got.text)
	}
	pin.body = `{"pinned":false}`
	if got := get[wire.Backup](t, w.do(t, pin)); got.Pinned || got.PinnedAt != nil {
		t.Errorf("unpinned: %+v", got)
	}
	plan := get[wire.RestorePlan](t, w.do(t, request{
		method: "POST", path: path + "/recovery/restore-request", key: w.org.full, body: `{"dry_run":true,"target_lsn":"` + *b.StopLSN + `"}`,
	}))
	if !plan.DryRun || plan.BackupID != b.ID || plan.RestoreBytes != *b.SizeBytes {
		t.Errorf("%+v", plan)
	}
	copied := get[wire.Operation](t, w.do(t, request{
		method: "POST", path: path + "/backups/" + b.ID + "/restore", key: w.org.full, body: `{"mode":"new","name":"copy"}`,
	}))
	if copied.NewDatabaseID == nil {
		t.Fatalf("%+v", copied)
	}
	w.awaitAvailable(t, "/databases/"+*copied.NewDatabaseID)
	exec(t, db.Credentials.ConnectionURL, "drop table t")
	op := get[wire.Operation](t, w.do(t, request{method: "POST", path: path + "/backups/" + b.ID + "/restore", key: w.org.full, body: `{"mode":"in_place"}`}))
	if op.Type != wire.OperationRestore || op.BackupID == nil || *op.BackupID != b.ID {
		t.Errorf("%+v", op)
	}
	if got := w.do(t, request{method: "POST", path: path + "/restart", key: w.org.full}); got.status != 409 {
		t.Errorf("restart while restoring: %d %s", got.status, got.text)
	}
	w.awaitAvailable(t, path)
	exec(t, db.Credentials.ConnectionURL, "select 1/(count(*)-999) from t") // an error unless there are 1000 rows
	undone := get[wire.Operation](t, w.do(t, request{method: "POST", path: path + "/recovery/undo", key: w.org.full}))
	if undone.Type != wire.OperationRestore {
		t.Errorf("%+v", undone)
	}
	w.awaitAvailable(t, path)
	exec(t, db.Credentials.ConnectionURL, "create table t (i int)") // it no longer exists
	if got := get[wire.DeletedBackup](t, w.do(t, request{method: "DELETE", path: path + "/backups/" + b.ID, key: w.org.full})); !got.Deleted {
		t.Errorf("%+v", got)
	}
	// Those that follow each restore automatically may be there.
	for _, left := range get[[]wire.Backup](t, w.do(t, request{method: "GET", path: path + "/backups", key: w.org.full})) {
		if left.Type != wire.BackupScheduled {
			t.Errorf("%+v", left)
		}
	}
}

func exec(tb testing.TB, url, sql string) {
	tb.Helper()
	conn, err := connect(tb, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(tb.Context(), sql); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// await polls until check is done.
func await[T any](tb testing.TB, check func() (T, bool)) (value T) {
	tb.Helper()
	if !testenv.Poll(time.Minute, func() (done bool) {
		value, done = check()
		return done
	}) {
		tb.Fatalf("waited too long: %+v", value)
	}
	return value
}

func (w *world) awaitAvailable(tb testing.TB, path string) {
	tb.Helper()
	await(tb, func() (wire.Database, bool) {
		db := get[wire.Database](tb, w.do(tb, request{method: "GET", path: path, key: w.org.read}))
		return db, db.Status == wire.DatabaseAvailable && db.Operation == nil
	})
}

// TestRandomDatabases creates databases from random bodies: a rejected request leaves nothing, neither a record nor
// files.
func TestRandomDatabases(t *testing.T) {
	w := start(t)
	random := rand.New(rand.NewPCG(3, 4))
	create := bodyRoutes()[2]
	if create.action != model.ActionDatabaseCreate {
		t.Fatal(create.action)
	}
	made := 0
	for range 60 {
		if got := w.sendBody(t, create, "", randomBody(random, w.org.project)); got.status == 200 {
			made++
		}
	}
	entries, err := os.ReadDir(filepath.Join(w.dataDir, "instances"))
	if err != nil || len(entries) != made || made == 0 {
		t.Errorf("%d databases were made, and %d directories: %v", made, len(entries), err)
	}
}
