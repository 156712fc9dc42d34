package offsite_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

const passphrase = "correct horse"

// machine is an appliance whose databases are copied to a directory.
type machine struct {
	*engine.Engine
	t      testing.TB
	cfg    core.Config
	at     offsite.Location
	org    model.Organization
	closed bool
}

func startMachine(t testing.TB) *machine {
	t.Helper()
	keys, err := offsite.ParsePassphrases(passphrase)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, at: offsite.Location{URL: "file://" + t.TempDir(), Keys: keys}}
	if _, err := offsite.Initialize(t.Context(), m.at, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first, last := testenv.Ports(t, 20)
	m.cfg = core.Config{
		DataDir: dir, Search: binaries.Search{Explicit: postgrestest.Binaries(t).Dir},
		FirstPort: first, LastPort: last, Listen: []string{"127.0.0.1"}, PublicHost: "127.0.0.1",
		Allowlist: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rates: core.DefaultRates(),
		MaxObjectBytes: 1 << 30, TrashRetention: time.Hour, ReplacedRetention: time.Hour, AuditKeep: 10_000,
		Advice: advice.Defaults(), Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Offsite: core.Offsite{URL: m.at.URL, Passphrases: model.NewSecret(passphrase), Interval: 50 * time.Millisecond},
	}
	m.start()
	t.Cleanup(func() { m.close(context.Background()) })
	return m
}

func (m *machine) start() {
	m.t.Helper()
	postgrestest.LinkTemplate(m.t, postgrestest.Binaries(m.t), filepath.Join(m.cfg.DataDir, "warm"))
	e, err := engine.Open(m.cfg)
	if err == nil {
		_, err = e.Access.Initialize(false)
	}
	if err == nil {
		err = e.Start(m.t.Context())
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.Engine, m.closed = e, false
	if m.org, err = e.Access.Organization(model.DefaultName); err != nil {
		m.t.Fatal(err)
	}
	known := func(tx *meta.Tx) error { return tx.Keys().Insert(*m.call(model.ActionKeyCreate).Key) }
	if err := e.Core.Meta.Update(known); err != nil && !errors.Is(err, meta.ErrExists) {
		m.t.Fatal(err)
	}
	testenv.Within(m.t, time.Minute, "the copy", func() bool { return m.Offsite.Status().State == model.OffsiteCopying })
}

func (m *machine) close(ctx context.Context) {
	if m.closed {
		return
	}
	m.closed = true
	if err := m.Close(ctx); err != nil {
		m.t.Errorf("close: %v", err)
	}
}

// kill ends the copying at once, and starts the appliance again.
func (m *machine) kill() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	m.Offsite.Close(now)
	m.close(context.Background())
	m.start()
}

func (m *machine) call(action model.Action) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorKey, ID: "key_test", Name: "test"},
		Organization: m.org.ID, Key: &model.Key{ID: "key_test", Hash: []byte("key_test"), Scopes: model.Scopes(), AllowDangerous: true},
	}
}

func (m *machine) createDatabase(name string) (databases.View, databases.Connection) {
	m.t.Helper()
	projects, err := m.Access.ProjectList(m.call(model.ActionProjectList), core.Filter{}, core.Page{})
	if err != nil {
		m.t.Fatal(err)
	}
	db, c, err := m.Databases.Create(m.t.Context(), m.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: projects.Items[0].ID, Name: name})
	if err != nil {
		m.t.Fatal(err)
	}
	return db, c
}

func (m *machine) backUp(database string) model.Backup {
	m.t.Helper()
	b, err := m.Recovery.BackupCreate(m.call(model.ActionBackupCreate), database)
	if err != nil {
		m.t.Fatal(err)
	}
	testenv.Within(m.t, 2*time.Minute, "the backup", func() bool {
		now, err := m.Recovery.BackupGet(m.call(model.ActionBackupGet), database, b.ID)
		return err == nil && now.Status == model.BackupCompleted && len(m.Core.Claims.UnderWay()) == 0
	})
	return b
}

// acknowledged is what must be there once the log has a frame of a time.
type acknowledged struct {
	at      time.Time
	lsn     xlog.LSN
	backups []string
}

// load commits rows while act runs, and returns the position after the last commit once the archive has it.
func (m *machine) load(id string, c databases.Connection, act func()) acknowledged {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.t.Context())
	var clients sync.WaitGroup
	for range 3 {
		conn, err := pgx.Connect(ctx, c.URL())
		if err != nil {
			m.t.Fatal(err)
		}
		clients.Go(func() {
			defer conn.Close(context.Background())
			for {
				if _, err := conn.Exec(ctx, "insert into rows select repeat('x', (random() * 3000)::int)"); err != nil {
					return
				}
			}
		})
	}
	act()
	cancel()
	clients.Wait()
	conn, err := pgx.Connect(m.t.Context(), c.URL())
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var text string
	// Between two records, unlike what is flushed, which may end in a page of a record that is being written. The commit
	// after it flushes everything before.
	err = conn.QueryRow(m.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&text)
	if err == nil {
		_, err = conn.Exec(m.t.Context(), "insert into rows values ('last')")
	}
	if err != nil {
		m.t.Fatal(err)
	}
	lsn, err := xlog.ParseLSN(text)
	if err != nil {
		m.t.Fatal(err)
	}
	testenv.Within(m.t, time.Minute, "the archive", func() bool {
		status, ok := m.Recovery.WALStatus(id)
		return ok && status.Durable >= lsn
	})
	repo, err := m.Recovery.Repository(id)
	if err != nil {
		m.t.Fatal(err)
	}
	backups, err := repo.Backups()
	if err != nil {
		m.t.Fatal(err)
	}
	now := time.Now()
	// So that there is a frame after the moment.
	if _, err := conn.Exec(m.t.Context(), "insert into rows values ('after')"); err != nil {
		m.t.Fatal(err)
	}
	return acknowledged{now, lsn, backups}
}

// awaitCopied waits until nothing waits for the store.
func (m *machine) awaitCopied() {
	m.t.Helper()
	testenv.Within(m.t, time.Minute, "everything to be copied", func() bool {
		st := m.Offsite.Status()
		return st.State == model.OffsiteCopying && st.Backlog == 0
	})
}

// TestDatabasesFromTheCopy puts a database under load, with backups, collections, restarts and a kill, and brings it back from
// every kind of cut of the log: every commit that was archived before the last frame is there, from the backups that were
// copied by then, and all files are whole.
func TestDatabasesFromTheCopy(t *testing.T) {
	t.Parallel()
	m := startMachine(t)
	db, c := m.createDatabase("shop")
	other, _ := m.createDatabase("other")
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "create table rows (v text)")
	if err := errors.Join(err, conn.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	var first model.Backup
	known := []acknowledged{m.load(db.ID, c, func() { first = m.backUp(db.ID) })}
	m.awaitCopied()
	known = append(known, m.load(db.ID, c, func() { m.backUp(db.ID) }))
	m.kill()
	known = append(known, m.load(db.ID, c, func() {
		m.backUp(db.ID)
		if err := m.Recovery.BackupDelete(m.call(model.ActionBackupDelete), db.ID, first.ID); err != nil {
			t.Fatal(err)
		}
	}))
	m.close(context.Background()) // with a checkpoint
	m.start()
	if _, err := m.Databases.Delete(t.Context(), m.call(model.ActionDatabaseDelete), other.ID); err != nil {
		t.Fatal(err)
	}
	known = append(known, m.load(db.ID, c, func() {}))
	m.awaitCopied()
	archive, err := m.Recovery.WALArchive(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	generation, timeline := db.Generation, uint32(1)
	if g, err := archive.Generation(generation); err == nil {
		timeline = g.Timeline
	}
	m.close(context.Background())
	for n := range 12 {
		dir := t.TempDir()
		var end time.Time
		err := offsite.RestoreDatabases(t.Context(), m.at, dir, func(times []time.Time) int {
			cut := len(times)
			if n > 1 {
				cut = rand.IntN(len(times) + 1)
			}
			for _, at := range times[:cut] {
				if at.After(end) {
					end = at
				}
			}
			return cut
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range known {
			if n == 0 || k.at.Before(end) {
				expectDatabase(t, filepath.Join(dir, "backups", db.ID), generation, timeline, k, n == 0 && k.at.Equal(known[len(known)-1].at))
			}
		}
	}
}

// expectDatabase expects the WAL up to an acknowledged position, from the oldest backup on, and whole files.
func expectDatabase(t *testing.T, dir string, generation int, timeline uint32, k acknowledged, last bool) {
	t.Helper()
	archive, err := wal.Open(filepath.Join(dir, recovery.WALDirectory), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if _, err := os.Stat(filepath.Join(dir, "repository")); err != nil {
		return // before the first backup
	}
	r, err := repository.Open(filepath.Join(dir, "repository"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.Verify(t.Context(), nil)
	if err = errors.Join(err, report.Err()); err != nil {
		t.Error(err)
	}
	ids, err := r.Backups()
	if err != nil {
		t.Fatal(err)
	}
	if last && len(ids) != len(k.backups) {
		t.Errorf("there are the backups %v, want %v", ids, k.backups)
	}
	for _, id := range ids {
		m, _, err := r.Manifest(id)
		if err != nil {
			t.Fatal(err)
		}
		start, err := xlog.ParseLSN(m.Backup.StartLSN)
		if err != nil {
			t.Fatal(err)
		}
		if start > k.lsn {
			continue
		}
		if err := archive.Check(t.Context(), generation, timeline, start, k.lsn, nil); err != nil {
			t.Errorf("what was acknowledged at %v: %v", k.at, err)
		}
	}
}
