package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal"
	"holdfast/engine/access"
	"holdfast/engine/advice"
	"holdfast/engine/certificates"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// advised is an appliance with one database; the test runs its checks.
type advised struct {
	*appliance
	t     *testing.T
	db    databases.View
	owner *pgx.Conn
	ahead atomic.Int64
}

// startAdvised starts an appliance on which few things cause a recommendation.
func startAdvised(t *testing.T, change func(*core.Config)) *advised {
	t.Helper()
	a := &advised{t: t}
	cfg := testConfig(t, newDataDir(t))
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(a.ahead.Load())) }
	cfg.Advice = advice.Thresholds{
		BackupAge: time.Hour, CertificateLeft: 14 * 24 * time.Hour, KeyUnused: time.Hour, PlanUsed: 0.8,
		SeqScans: 10, SeqRows: 1000, ForeignKeyRows: 100, DeadRows: 500, DeadShare: 0.2, BloatBytes: 1 << 20, BloatShare: 0.5,
		FreezeFactor: 1.5, ConnectionShare: 0.1, IdleSession: 0, IdleTransaction: 0,
		CacheBlocks: 2000, CacheRatio: 0.9, SlowCalls: 5, SlowMean: time.Millisecond, IndexBytes: 1,
	}
	if change != nil {
		change(&cfg)
	}
	a.appliance = startEngineOn(t, cfg)
	var c databases.Connection
	a.db, c = a.createDatabase(t, "shop")
	a.owner = connect(t, c)
	t.Cleanup(func() { a.owner.Close(context.Background()) })
	return a
}

func (a *advised) sql(statements ...string) {
	a.t.Helper()
	for _, sql := range statements {
		if _, err := a.owner.Exec(a.t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			a.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// look runs the checks and returns the recommendations of a code.
func (a *advised) look(code string) []model.Recommendation {
	a.t.Helper()
	db, err := a.Databases.Record(a.db.ID)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := a.Insight.AdviseOne(a.t.Context(), db); err != nil {
		a.t.Fatal(err)
	}
	found, err := a.Insight.Recommendations(a.call(model.ActionRecommendationList))
	if err != nil {
		a.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(r model.Recommendation) bool { return r.Code != code })
}

// one returns the only recommendation of a code, which must be complete.
func (a *advised) one(code string) model.Recommendation {
	a.t.Helper()
	found := a.look(code)
	if len(found) != 1 {
		a.t.Fatalf("%d recommendations %s: %+v", len(found), code, found)
	}
	r := found[0]
	if r.Title == "" || r.Message == "" || len(r.Evidence) == 0 || r.DetectedAt.IsZero() || r.Action == nil && r.SQL == "" || r.SQL != "" && r.Caution == "" {
		a.t.Errorf("%s leaves something out: %+v", code, r)
	}
	return r
}

func (a *advised) gone(code string) {
	a.t.Helper()
	if found := a.look(code); len(found) != 0 {
		a.t.Errorf("%s is still there: %+v", code, found)
	}
}

// awaitStatistics waits until the server has the statistics of the owner's
// session, which are sent when it is idle.
func (a *advised) awaitStatistics() {
	a.t.Helper()
	a.sql("select pg_stat_force_next_flush()", "select 1")
}

// Each problem is created, found, and resolved once the owner has run exactly the recommended statement.
func TestRecommendedStatementsHelp(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	for _, tt := range []struct {
		code  string
		cause []string
		first func() // before the recommended statement
		clean string
	}{
		{code: "missing_primary_key", cause: []string{`create table "No ""key" (n int); insert into "No ""key" values (1)`}},
		{code: "missing_primary_key", cause: []string{"create table taken (id int, row_id int)"}},
		{code: "unindexed_foreign_key", cause: []string{
			"create table parents (id int primary key); insert into parents select generate_series(1, 500)",
			`create table children (id int primary key, "the parent" int references parents); insert into children select n, n from generate_series(1, 500) n; analyze children`,
		}},
		{code: "duplicate_index", cause: []string{"create table twice (id int primary key, n int); create index on twice (n)", "create index on twice (n)"}, clean: "drop table twice"},
		{code: "unused_index", cause: []string{"create table idle (id int primary key, n int); insert into idle select n, n from generate_series(1, 5000) n; create index on idle (n)"}},
		{code: "dead_rows", cause: []string{
			"create table dying (id int primary key, n int) with (autovacuum_enabled = off); insert into dying select n, n from generate_series(1, 2000) n",
			"update dying set n = n + 1",
		}},
		{code: "table_bloat", cause: []string{
			"create table swollen (id int primary key, text text) with (autovacuum_enabled = off); insert into swollen select n, repeat('x', 500) from generate_series(1, 8000) n",
			"delete from swollen where id % 10 <> 0", "vacuum (analyze) swollen",
		}},
		{code: "rls_without_policy", cause: []string{"create table guarded (id int primary key); alter table guarded enable row level security"}},
		{code: "idle_in_transaction", first: func() {
			idle := connect(t, a.connection(t))
			if _, err := idle.Exec(t.Context(), "begin; select 1", pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.code, func(t *testing.T) {
			a.t = t
			a.gone(tt.code)
			a.sql(tt.cause...)
			if tt.first != nil {
				tt.first()
			}
			a.awaitStatistics()
			r := a.one(tt.code)
			if again := a.one(tt.code); !again.DetectedAt.Equal(r.DetectedAt) || again.ID() != r.ID() {
				t.Errorf("it is another at the next look: %+v", again)
			}
			a.sql(r.SQL)
			a.awaitStatistics()
			testenv.Eventually(t, "the end of "+tt.code, func() bool { return len(a.look(tt.code)) == 0 }) // a statement that ends sessions does not wait for them
			if tt.clean != "" {
				a.sql(tt.clean)
			}
		})
	}
}

// Of two identical indexes, the one that nothing depends on is recommended for dropping; indexes that differ in
// anything are both useful.
func TestDuplicatesOfIndexes(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create extension pg_trgm")
	for _, tt := range []struct{ one, two, drop string }{
		{"create index one on twice (n)", "create index two on twice (n)", "two"},
		{"create index one on twice (n)", "create unique index two on twice (n)", "one"},
		{"create index one on twice (n)", "alter table twice add constraint two exclude using btree (n with =)", "one"},
		{"alter table twice add constraint one exclude using btree (n with =)", "create index two on twice (n)", "two"},
		{"create index one on twice (n)", "create index two on twice (n); cluster twice using two", "one"},
		{"alter table twice add constraint one exclude using btree (n with =)", "alter table twice add constraint two exclude using btree (n with =)", ""},
		{"create unique index one on twice (n)", "create unique index two on twice (n); alter table twice replica identity using index two", ""},
		{"create index one on twice (n)", "create index two on twice (n) with (fillfactor = 50)", ""},
		{"create index one on twice (n)", "create index two on twice using hash (n)", ""},
		{"create index one on twice (n)", "create index two on twice (n desc)", ""},
		{"create index one on twice (n)", "create index two on twice (n) include (m)", ""},
		{"create index one on twice (n, m)", "create index two on twice (n) include (m)", ""},
		{"create index one on twice (n)", "create index two on twice (n) where m > 0", ""},
		{"create index one on twice ((n + 1))", "create index two on twice ((n + 2))", ""},
		{"create index one on twice (s)", "create index two on twice (s text_pattern_ops)", ""},
		{"create index one on twice (s)", `create index two on twice (s collate "C")`, ""},
		{"create index one on twice using gist (s gist_trgm_ops)", "create index two on twice using gist (s gist_trgm_ops (siglen = 64))", ""},
	} {
		a.sql("create table twice (n int not null, m int, s text)", tt.one, tt.two)
		dropped := ""
		for _, r := range a.look("duplicate_index") {
			dropped += r.Evidence["index"].(string)
		}
		if dropped != tt.drop {
			t.Errorf("%s; %s: %q is advised to be dropped", tt.one, tt.two, dropped)
		}
		a.sql("drop table twice")
	}
}

// Only an index that a foreign key's check can use counts as one.
func TestIndexesOfForeignKeys(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create extension btree_gist", "create table parents (id int primary key, a int not null, b int not null, name text not null unique, unique (a, b))",
		"insert into parents select n, n, n, n from generate_series(1, 200) n")
	indexes := []struct {
		on     string
		serves bool
	}{
		{"(p)", true},
		{"(p, x)", true},
		{"(x, p)", false},
		{"(p desc) include (x)", true},
		{"using hash (p)", true},
		{"using gist (p, x)", true},
		{"using brin (p)", false},
		{"using spgist (name)", true},
		{"(name text_pattern_ops)", true},
		{"(b, a)", true},
		{"(b)", false},
		{"(p) where p is not null", true},
		{"(p) where (p) is not null and p is not null", true},
		{"(p) where p is null", false},
		{"(p) where x is not null", false},
		{"(p) where p is not null and x > 0", false},
		{"(p) where p is not null or x is not null", false},
		{"(p) where p > 0", false},
		{"((p + 0))", false},
		{"(a, b) where a is not null and b is not null", true},
		{"(a, b) where a is not null and x is not null", false},
	}
	for n, index := range indexes {
		key := "p int references parents, a int, b int, name text"
		switch {
		case strings.Contains(index.on, "name"):
			key = "p int, a int, b int, name text references parents (name)"
		case strings.Contains(index.on, "a, b"), strings.Contains(index.on, "b, a"), index.on == "(b)":
			key = "p int, a int, b int, name text, foreign key (a, b) references parents (a, b)"
		}
		a.sql(fmt.Sprintf(`create table c%d (x int, %s); insert into c%[1]d select n, n, n, n, n from generate_series(1, 200) n;
			create index on c%[1]d %[3]s; analyze c%[1]d`, n, key, index.on))
		if found := a.look("unindexed_foreign_key"); (len(found) == 0) != index.serves {
			t.Errorf("an index %s: %+v", index.on, found)
		}
		a.sql(fmt.Sprintf("drop table c%d", n))
	}
	a.sql("create table twice (p int references parents); insert into twice select 1 from generate_series(1, 200); analyze twice")
	if _, err := a.owner.Exec(t.Context(), "create unique index concurrently on twice (p)", pgx.QueryExecModeSimpleProtocol); err == nil {
		t.Fatal("a unique index was made of duplicates")
	}
	a.one("unindexed_foreign_key")
}

// Statistics start over after a crash, and an index that was not used since may have been used before.
func TestUnusedIndexAfterACrash(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	ahead.Store(int64(-3 * time.Hour)) // when the database is created
	a := startAdvised(t, func(cfg *core.Config) {
		cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		cfg.Advice.StatisticsAge = time.Hour
	})
	a.sql("create table used (n int); insert into used select generate_series(1, 5000); create index used_n on used (n); create index idle_n on used ((n + 1))",
		"create index ordering_n on used ((n + 2)); alter table used cluster on ordering_n",
		"analyze used", "set enable_seqscan = off", "select from used where n = 7")
	a.awaitStatistics()
	ahead.Store(int64(2 * time.Hour))
	if r := a.one("unused_index"); !strings.Contains(r.SQL, "idle_n") {
		t.Errorf("recommended %s", r.SQL)
	}
	pid := a.pid(t, a.db.ID)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the next postmaster", func() bool {
		status, _ := a.status(t, a.db.ID)
		_, _, now := a.Databases.Instances.Status(a.db.ID)
		return status == model.DatabaseAvailable && now != pid && now != 0
	})
	ahead.Store(0)
	a.gone("unused_index")
}

func (a *advised) connection(t *testing.T) databases.Connection {
	t.Helper()
	c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), a.db.ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Recommendations that depend on recent activity: a sequentially scanned table gets an index on the column that its
// statements filter by, and then the statement is no longer slow.
func TestRecommendationsByCounters(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql(`create table orders (id int primary key, "customer" int, filler text) with (autovacuum_enabled = off)`,
		"insert into orders select n, n % 5000, repeat('x', 300) from generate_series(1, 60000) n", "analyze orders")
	query := func(n int) {
		for range n {
			a.sql("select count(*) from orders where customer = 7")
		}
		a.awaitStatistics()
	}
	a.gone("missing_index") // the first check, which the next one is compared with
	query(30)
	r := a.one("missing_index")
	if !strings.Contains(r.SQL, `("customer")`) || r.Evidence["column"] != "customer" {
		t.Errorf("recommended %s: %v", r.SQL, r.Evidence)
	}
	query(30)
	slow := a.one("slow_statement")
	if !strings.Contains(slow.Message, "customer = $1") {
		t.Errorf("the message: %s", slow.Message)
	}
	a.sql(slow.SQL) // shows the plan
	query(30)
	a.sql(a.one("missing_index").SQL, "vacuum analyze orders")
	query(30)
	a.look("") // moves the activity before the index into the past
	query(30)
	a.gone("missing_index")
	a.gone("slow_statement")
}

// For a truncated statement no unusable statement is recommended.
func TestSlowStatementThatIsCut(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.gone("slow_statement")
	for range 10 {
		a.sql("select count(*) from generate_series(1, 100000) where 'é' = '' /*" + strings.Repeat("é", 2000) + "*/ or 1 = 1")
	}
	a.awaitStatistics()
	found := a.look("slow_statement")
	if len(found) != 1 || found[0].SQL != "" || !strings.Contains(found[0].Caution, "EXPLAIN") || !strings.Contains(found[0].Message, "generate_series") {
		t.Errorf("%+v", found)
	}
}

// The cache is too small for the data that is read; the operator enlarges it.
func TestRecommendationOfCache(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create table wide (id int primary key, filler text)", "insert into wide select n, repeat('x', 1000) from generate_series(1, 20000) n", "vacuum analyze wide")
	read := func() {
		for range 3 {
			a.sql("select sum(length(filler)) from wide")
		}
		a.awaitStatistics()
	}
	a.setting("shared_buffers", "1MB")
	a.look("")
	read()
	if r := a.one("cache_hit_ratio_low"); !strings.Contains(r.Message, "shared_buffers") {
		t.Error(r.Message)
	}
	a.setting("shared_buffers", "256MB")
	read()
	a.look("")
	read()
	a.gone("cache_hit_ratio_low")
}

func (a *advised) setting(name, value string) {
	a.t.Helper()
	if _, err := a.Databases.ChangeSettings(a.t.Context(), a.call(model.ActionDatabaseSettings), a.db.ID, map[string]string{name: value}); err != nil {
		a.t.Fatal(err)
	}
	a.owner = connect(a.t, a.connection(a.t))
}

// Autovacuum has not frozen a table in time.
func TestRecommendationOfWraparound(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.setting("autovacuum_naptime", "1d")
	a.setting("autovacuum_freeze_max_age", "100000")
	a.sql("create table ancient (id int primary key); insert into ancient values (1)", `do $$ begin
		for i in 1..160000 loop perform pg_current_xact_id(); commit; end loop; end $$`)
	r := a.one("transaction_wraparound")
	if age := r.Evidence["age"].(int64); age < 150_000 {
		t.Errorf("the age is %d", age)
	}
	a.sql(r.SQL)
	a.gone("transaction_wraparound")
}

func TestRecommendationOfConnections(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.gone("connections_near_limit")
	c := a.connection(t)
	for range 11 { // of at most 100, where a tenth is much
		connect(t, c)
	}
	r := a.one("connections_near_limit")
	a.sql(r.SQL)
	testenv.Eventually(t, "the end of the idle sessions", func() bool { return len(a.look("connections_near_limit")) == 0 })
}

// The recommended call enables row-level security.
func TestRecommendationsOfRowSecurity(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create table plain (id int primary key)")
	a.follow(a.one("rls_disabled"))
	a.gone("rls_disabled")
	a.sql("drop table plain", "create table half (id int primary key); create policy p on half using (true)")
	a.gone("rls_disabled")
	a.follow(a.one("rls_policies_disabled"))
	a.gone("rls_policies_disabled")
}

// The recommended call updates the extension; one without its files is named.
func TestRecommendationsOfExtensions(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	super, err := a.Databases.Instances.Connect(t.Context(), a.db.ID, a.db.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(t.Context())
	for _, statement := range []string{
		"create extension pgstattuple schema extensions version '1.4'", "create extension bloom schema extensions", "update pg_extension set extname = 'gone' where extname = 'bloom'",
	} {
		if _, err := super.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if r := a.one("extension_missing"); r.Object != "gone" || !strings.Contains(r.Message, "install") {
		t.Errorf("%+v", r)
	}
	a.follow(a.one("extension_outdated"))
	a.gone("extension_outdated")
}

// follow makes the recommended call.
func (a *advised) follow(r model.Recommendation) {
	a.t.Helper()
	var err error
	path := strings.TrimPrefix(r.Action.Path, "/v1/databases/"+a.db.ID)
	switch body := r.Action.Body; r.Action.Method + " " + path {
	case "POST /rls":
		_, err = a.Databases.RLSSet(a.t.Context(), a.call(model.ActionRLSSet), a.db.ID, databases.RLSChange{
			Schema: body["schema"].(string), Table: body["table"].(string), Enabled: body["enabled"].(bool),
		})
	case "POST /extensions":
		_, err = a.Databases.ExtensionSet(a.t.Context(), a.call(model.ActionExtensionSet), a.db.ID, databases.ExtensionChange{Name: body["name"].(string)})
	case "PUT /allowlist":
		_, err = a.Databases.AllowlistSet(a.t.Context(), a.call(model.ActionAllowlistSet), a.db.ID, body["entries"].([]string))
	case "POST /restart":
		_, err = a.Databases.Restart(a.t.Context(), a.call(model.ActionDatabaseRestart), a.db.ID)
	case "POST /backups":
		var b model.Backup
		if b, err = a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), a.db.ID); err == nil {
			a.await(b.ID)
		}
	default:
		a.t.Fatalf("nothing follows %+v", r.Action)
	}
	if err != nil {
		a.t.Fatalf("%+v: %v", r.Action, err)
	}
}

func (a *advised) await(backup string) {
	a.t.Helper()
	testenv.Eventually(a.t, "the backup", func() bool {
		b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), a.db.ID, backup)
		return err == nil && b.CompletedAt != nil
	})
}

func TestRecommendationsOfBackups(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.gone("backup_failed")
	a.follow(a.one("no_backup"))
	a.gone("no_backup")
	a.gone("backup_old")
	a.ahead.Store(int64(2 * time.Hour))
	a.follow(a.one("backup_old"))
	a.gone("backup_old")
	repair := a.breakBackups()
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), a.db.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.await(b.ID)
	r := a.one("backup_failed")
	repair()
	a.follow(r)
	a.gone("backup_failed")

	if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Backups().Insert(model.Backup{
			ID: a.Core.NewID(model.ResourceBackup), Organization: a.org, Database: a.db.ID, Type: model.BackupScheduled,
			Status: model.BackupRunning, StartedAt: a.Core.Clock(),
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.Recovery.RecoverBackups(""); err != nil { // as after a crash
		t.Fatal(err)
	}
	a.gone("backup_failed")
}

// A sandbox needs no backups, and a database being imported cannot have one: neither counts as lacking backups.
func TestNoBackupIsOwed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, slow)
	a := startAdvised(t, nil)
	sandbox, err := a.Imports.SandboxCreate(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewSandbox{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	record := a.beginImport(t, imports.NewImport{Name: "coming", SourceURL: model.NewSecret(o.url())})
	a.awaitCopying(t, record.ID)
	if r := a.one("no_backup"); r.Resource.ID != a.db.ID {
		t.Errorf("it is about %+v", r.Resource)
	}
	status, err := a.Insight.AgentStatus(a.call(model.ActionAgentStatus))
	if err != nil || len(status.Databases) != 3 || len(status.Unprotected) != 1 || status.Unprotected[0].ID != a.db.ID {
		t.Errorf("unprotected are %+v, %v", status.Unprotected, err)
	}
	if m, err := a.Insight.Measure(); err != nil || m.Unprotected != 1 {
		t.Errorf("%d are unprotected, %v", m.Unprotected, err)
	}
	for _, id := range []string{record.Database, sandbox.ID} {
		if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), id); err != nil {
			t.Error(err)
		}
	}
}

// The archive cannot be written, while the database keeps writing.
func TestRecommendationOfArchiving(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create table written (id int primary key)")
	testenv.Eventually(t, "the receiver", func() bool {
		status, receives := a.Recovery.WALStatus(a.db.ID)
		return receives && status.State == wal.StateStreaming && !status.RestorableTo.IsZero()
	})
	a.gone("wal_archiving_failed")
	repair := a.breakBackups()
	conn, err := a.Databases.Instances.Connect(t.Context(), a.db.ID, databases.Maintenance)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for range 3 {
		a.sql("insert into written select coalesce(max(id), 0) + 1 from written")
		if _, err := conn.Exec(t.Context(), "select pg_switch_wal()"); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "the recommendation", func() bool { return len(a.look("wal_archiving_failed")) == 1 })
	if r := a.one("wal_archiving_failed"); !strings.Contains(r.Message, "permission denied") {
		t.Errorf("the message: %s", r.Message)
	}
	repair()
	testenv.Eventually(t, "the archive's return", func() bool { return len(a.look("wal_archiving_failed")) == 0 })
}

// breakBackups makes the directories of the database's backups unwritable.
func (a *advised) breakBackups() (repair func()) {
	a.t.Helper()
	mode := func(mode os.FileMode) {
		var all []string
		err := filepath.WalkDir(a.Recovery.BackupDirectory(a.db.ID), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return err
		})
		for _, path := range all {
			err = errors.Join(err, os.Chmod(path, mode))
		}
		if err != nil {
			a.t.Fatal(err)
		}
	}
	mode(0o500)
	a.t.Cleanup(func() { mode(0o700) })
	return func() { mode(0o700) }
}

func TestRecommendationsOfAccess(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.gone("open_allowlist")
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), a.db.ID, []string{"0.0.0.0/0", "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	a.follow(a.one("open_allowlist"))
	a.gone("open_allowlist")
	if db, err := a.Databases.Record(a.db.ID); err != nil || !slices.Equal(db.Allowlist, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}) {
		t.Errorf("the allow-list is %v, %v", db.Allowlist, err)
	}
	a.gone("certificate_near_expiry")
	if err := a.Databases.CA.Issue(certificates.InDataDirectory(a.Databases.DataDirectory(a.db.ID, 1)), []string{"127.0.0.1"}, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	a.follow(a.one("certificate_near_expiry"))
	a.gone("certificate_near_expiry")
}

func TestRecommendationsOfKeys(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	make := func(name string, life time.Duration) model.Key {
		_, key, err := a.Access.KeyCreate(a.operatorCall(model.ActionKeyCreate), access.NewKey{Name: name, Preset: model.PresetReadOnly, ExpiresIn: life, Source: model.KeySourceOperator})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	revoke := func(r model.Recommendation, key model.Key) {
		t.Helper()
		if r.Resource.ID != key.ID || !strings.Contains(r.Message, "key revoke "+key.ID) {
			t.Errorf("%+v is not about %s", r, key.ID)
		}
		if _, err := a.Access.KeyRevoke(a.call(model.ActionKeyRevoke), key.ID); err != nil {
			t.Fatal(err)
		}
	}
	endless := make("endless", 0)
	revoke(a.one("key_without_expiry"), endless)
	a.gone("key_without_expiry")
	idle := make("idle", 1000*time.Hour)
	a.gone("key_unused")
	a.ahead.Store(int64(2 * time.Hour))
	revoke(a.one("key_unused"), idle)
	a.gone("key_unused")
}

func TestRecommendationsOfRoom(t *testing.T) {
	t.Parallel()
	plan, err := model.NewPlan("tiny", map[string]int64{"buckets": 1})
	if err != nil {
		t.Fatal(err)
	}
	a := startAdvised(t, func(c *core.Config) {
		c.Plans = map[string]model.Plan{"tiny": plan}
		c.Advice.DiskFree = 1 // an empty disk would suffice
	})
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), "tiny"); err != nil {
		t.Fatal(err)
	}
	a.gone("plan_limit_near")
	b := a.bucket(t, "files")
	if r := a.one("plan_limit_near"); r.Severity != model.SeverityCritical || r.Evidence["metric"] != model.MetricBuckets {
		t.Errorf("%+v", r)
	}
	if _, err := a.Objects.BucketDelete(a.call(model.ActionBucketDelete), b, false); err != nil {
		t.Fatal(err)
	}
	a.gone("plan_limit_near")
	a.one("disk_nearly_full")
	a.cfg.Advice.DiskFree = 0
	a.Engine.Core.Config.Advice.DiskFree = 0
	a.gone("disk_nearly_full")
}

func TestRecommendationOfAFailedDatabase(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.gone("database_failed")
	a.breakDown(t, a.db.Database)
	r := a.one("database_failed")
	if !strings.Contains(r.Message, "nonsense") {
		t.Errorf("the message: %s", r.Message)
	}
	repair(t, a.appliance, a.db.Database)
	a.follow(r)
	a.gone("database_failed")
}

// The checks run none of a tenant's functions, operators and casts, whatever their schema and the search path; nor can
// the tenant's locks block the checks.
func TestChecksRunNothingOfATenants(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql(`create table trapped (who text, what text)`,
		`create function trap() returns void language plpgsql as $$ begin
			if current_setting('is_superuser') = 'on' then insert into public.trapped values (current_user, 'function'); end if; end $$`,
	)
	for _, f := range []string{
		"age(xid) returns int", "quote_ident(text) returns text", "pg_get_userbyid(oid) returns name", "current_setting(text) returns text",
		"cardinality(anyarray) returns int", "make_interval(secs float8) returns interval",
	} {
		name, returns, _ := strings.Cut(f, " returns ")
		a.sql(fmt.Sprintf("create function public.%s returns %s language plpgsql as $$ begin perform public.trap(); return null; end $$", name, returns))
	}
	for _, op := range []string{"int2[], int2[]", "name, name", "text, text", "oid, oid"} {
		left, right, _ := strings.Cut(op, ", ")
		function := "op_" + strings.Map(func(r rune) rune {
			if r == '[' || r == ']' {
				return -1
			}
			return r
		}, left)
		a.sql(fmt.Sprintf("create function public.%s(%s, %s) returns bool language plpgsql as $$ begin perform public.trap(); return true; end $$", function, left, right))
		for _, symbol := range []string{"=", "<>", "@>", ">="} {
			a.sql(fmt.Sprintf("create operator public.%s (leftarg = %s, rightarg = %s, function = public.%s)", symbol, left, right, function))
		}
	}
	a.sql(`alter database shop set search_path = public, pg_catalog`,
		`create view public.pg_class as select public.trap()::text as relname`,
		`create view public.pg_stat_statements as select public.trap()::text as query`,
		`create table indexed (id int primary key, n int, check (n > 0)); create index on indexed ((n + 1)) where n > 1`)
	locker := connect(t, a.connection(t))
	if _, err := locker.Exec(t.Context(), "begin; lock table indexed, trapped in access exclusive mode", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	a.look("")
	t.Logf("with a locked table the checks took %s", time.Since(before))
	if found := a.look("missing_primary_key"); len(found) == 0 {
		t.Error("the checks found nothing")
	}
	if len(a.Insight.Findings(a.db.ID)) != len(advice.DatabaseChecks()) {
		t.Errorf("only these ran: %v", a.Insight.Findings(a.db.ID))
	}
	if _, err := locker.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	var sprung int
	if err := a.owner.QueryRow(t.Context(), "select count(*) from public.trapped").Scan(&sprung); err != nil || sprung != 0 {
		t.Errorf("%d traps were sprung, %v", sprung, err)
	}
}

// A partitioned table cannot have a primary key on a column of its own.
func TestPrimaryKeyOfPartitions(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create table parted (id int, at date) partition by range (at)")
	a.sql(a.one("missing_primary_key").SQL)
	a.sql("alter table parted add primary key (id, at)")
	a.gone("missing_primary_key")
}

// The background runs the checks once somebody has requested the advice, and forgets removed databases.
func TestAdviceComesByItself(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create table bare (n int)")
	find := func() bool {
		found, err := a.Insight.Recommendations(a.call(model.ActionRecommendationList))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found, func(r model.Recommendation) bool { return r.Code == "missing_primary_key" })
	}
	testenv.Eventually(t, "the recommendation", find)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), a.db.ID); err != nil {
		t.Fatal(err)
	}
	if find() {
		t.Error("the database is gone, and its recommendations are not")
	}
	a.Insight.AdviseAll(t.Context(), 0)
	if kept := a.Insight.Findings(a.db.ID); kept != nil {
		t.Errorf("kept %v", kept)
	}
}
