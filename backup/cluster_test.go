package backup

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/repository"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(helperTask); task != "" {
		os.Exit(runHelper(task))
	}
	postgrestest.Main(m)
}

// cluster is a PostgreSQL server to back up.
type cluster struct {
	*postgrestest.Cluster
	t testing.TB
}

// serverSettings leave space for the WAL of a pgbench run, so that no checkpoint interferes.
var serverSettings = []string{"max_wal_size=256MB", "shared_buffers=32MB"}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	return &cluster{postgrestest.NewCluster(t, postgrestest.Binaries(t), xlog.DefaultSegmentSize, serverSettings...), t}
}

// newForeignCluster is newCluster with its own system identifier.
func newForeignCluster(t testing.TB) *cluster {
	t.Helper()
	return &cluster{postgrestest.NewForeignCluster(t, postgrestest.Binaries(t), xlog.DefaultSegmentSize, serverSettings...), t}
}

// startCluster starts PostgreSQL on dir, until the test ends.
func startCluster(t testing.TB, dir string) *cluster {
	t.Helper()
	return &cluster{postgrestest.StartCluster(t, postgrestest.Binaries(t), dir, serverSettings...), t}
}

func pgTool(t testing.TB, name string, args ...string) *exec.Cmd {
	return postgrestest.Tool(postgrestest.Binaries(t), name, args...)
}

func (c *cluster) url(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s application_name='backup of a test'", c.SocketDir, database)
}

// connect opens a connection of the kind that Take requires.
func (c *cluster) connect() *pgx.Conn {
	c.t.Helper()
	conn, err := pgx.Connect(context.Background(), c.url("postgres"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// query returns the rows of sql with columns separated by "|".
func (c *cluster) query(sql string) string {
	c.t.Helper()
	return strings.TrimSpace(postgrestest.Run(c.t, pgTool(c.t, "psql", "-X", "-At", "-h", c.SocketDir, "-U", "postgres", "-c", sql, "postgres")))
}

// pgbench fills the cluster with about 15 MB per scale.
func (c *cluster) pgbench(scale int) {
	c.t.Helper()
	postgrestest.Run(c.t, c.pgbenchCommand("-i", "-q", "-s", fmt.Sprint(scale)))
}

func (c *cluster) pgbenchCommand(args ...string) *exec.Cmd {
	return pgTool(c.t, "pgbench", append(args, "-h", c.SocketDir, "-U", "postgres", "postgres")...)
}

// sessions counts the sessions that connect and Take's helpers opened.
func (c *cluster) sessions() string {
	c.t.Helper()
	return c.query("select count(*) from pg_stat_activity where application_name = 'backup of a test'")
}

// awaitSessions waits until at most that many sessions are left: a killed process's session ends with it, and the
// backup with the session.
func (c *cluster) awaitSessions(want string) {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.sessions() != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("a backup's session is left on the server")
		}
	}
}

// openRepository opens a repository for the test.
func openRepository(t testing.TB) (repo *repository.Repository, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repository")
	repo, err := repository.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	return repo, dir
}

// mustHoldNothing checks that a failed backup left nothing.
func mustHoldNothing(t testing.TB, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, "*/*")); len(left) > 0 {
		t.Errorf("left in the repository: %v", left)
	}
}

// archive stands in for the WAL archive: a slot keeps the server's WAL, and the changes are read from the pages
// themselves.
type archive struct {
	c       *cluster
	conn    *pgx.Conn
	scanned time.Duration // duration of ChangedPages
	gap     error         // error of ChangedPages, if set
}

func newArchive(c *cluster) *archive {
	a := &archive{c: c, conn: c.connect()}
	if _, err := a.conn.Exec(context.Background(), "select pg_create_physical_replication_slot('archive_' || pg_backend_pid(), true, true)"); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// WaitFor implements WAL: pg_wal has all flushed WAL.
func (a *archive) WaitFor(ctx context.Context, timeline uint32, lsn xlog.LSN) error {
	for {
		var there bool
		if err := a.conn.QueryRow(ctx, "select pg_current_wal_flush_lsn() >= $1::text::pg_lsn", lsn.String()).Scan(&there); err != nil || there {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// Covers implements WAL: the slot keeps all WAL.
func (a *archive) Covers(uint32, xlog.LSN, xlog.LSN) error { return nil }

// ChangedPages implements WAL.
func (a *archive) ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (Changes, error) {
	defer func(begin time.Time) { a.scanned += time.Since(begin) }(time.Now())
	if a.gap != nil {
		return nil, a.gap
	}
	changes := scannedPages{}
	err := filepath.WalkDir(a.c.Dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(a.c.Dir, path)
		if f, ok := parseRelation(name); err != nil || !ok || f.fork != "" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		changes[name] = []uint32{}
		for n := 0; n+pageSize <= len(b); n += pageSize {
			if pageLSN(b[n:]) >= from {
				changes[name] = append(changes[name], uint32(n/pageSize))
			}
		}
		return nil
	})
	return changes, err
}

type scannedPages map[string][]uint32

// Pages implements Changes.
func (s scannedPages) Pages(path string) ([]uint32, bool) {
	pages, ok := s[path]
	return pages, ok
}

// layWAL copies the server's WAL into a restored directory, without segments preallocated by the server: pg_waldump
// may open one of those first and find no header in it.
func (a *archive) layWAL(dir string) {
	a.c.t.Helper()
	last := a.c.query("select pg_walfile_name(pg_current_wal_lsn())")
	names, _ := filepath.Glob(filepath.Join(a.c.Dir, "pg_wal", "0*"))
	for _, name := range names {
		if filepath.Base(name) <= last {
			postgrestest.Run(a.c.t, exec.Command("cp", name, filepath.Join(dir, "pg_wal")))
		}
	}
}

// restored restores a backup and adds the WAL.
func restored(t testing.TB, repo *repository.Repository, id string, a *archive) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	if err := restoreTo(t.Context(), repo, id, dir); err != nil {
		t.Fatal(err)
	}
	a.layWAL(dir)
	return dir
}

func restoreTo(ctx context.Context, repo *repository.Repository, id, dir string) error {
	snapshot, err := repo.Snapshot(id)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return Restore(ctx, snapshot, dir, RestoreOptions{})
}
