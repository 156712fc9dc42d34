package backup

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// cluster is a PostgreSQL of a test, on a socket only.
type cluster struct {
	t       testing.TB
	dir     string // data directory
	sockets string
	process *exec.Cmd
	log     string
}

func pgTool(t testing.TB, name string, args ...string) *exec.Cmd {
	bin := postgrestest.Binaries(t)
	cmd := exec.Command(bin.Tool(name), args...)
	cmd.Env = bin.Env()
	return cmd
}

func run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
	return string(out)
}

// newCluster makes and starts a cluster with page checksums.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	// Made once for the run, whose temporary directory this is.
	from := filepath.Join(os.TempDir(), "template")
	if _, err := os.Stat(from); err != nil {
		run(t, pgTool(t, "initdb", "-k", "-N", "-U", "postgres", "-A", "trust", "-D", from))
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := exec.Command("cp", "-a", from, dir).Run(); err != nil {
		t.Fatal(err)
	}
	return startCluster(t, dir)
}

// startCluster starts PostgreSQL on dir, until the test ends.
func startCluster(t testing.TB, dir string) *cluster {
	t.Helper()
	sockets, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir, sockets: sockets, log: filepath.Join(sockets, "log")}
	c.start()
	t.Cleanup(c.stop)
	return c
}

func (c *cluster) start() {
	c.t.Helper()
	log, err := os.Create(c.log)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	c.process = pgTool(c.t, "postgres", "-D", c.dir, "-k", c.sockets, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "max_wal_size=256MB", "-c", "shared_buffers=32MB")
	c.process.Stdout, c.process.Stderr = log, log
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.waitReady()
}

func (c *cluster) waitReady() {
	c.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgconn.Connect(context.Background(), c.url("postgres"))
		if err == nil {
			conn.Close(context.Background())
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(c.log)
			c.t.Fatalf("PostgreSQL does not start: %v\n%s", err, log)
		}
	}
}

// stop stops PostgreSQL, if it runs.
func (c *cluster) stop() {
	if c.process == nil {
		return
	}
	c.process.Process.Signal(syscall.SIGINT)
	c.process.Wait()
	c.process = nil
}

// crash ends PostgreSQL without a warning. Its children follow by themselves.
func (c *cluster) crash() {
	c.process.Process.Kill()
	c.process.Wait()
	c.process = nil
}

func (c *cluster) url(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s application_name='backup of a test'", c.sockets, database)
}

// connect opens the kind of connection Take wants.
func (c *cluster) connect() *pgx.Conn {
	c.t.Helper()
	conn, err := pgx.Connect(context.Background(), c.url("postgres"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// query returns the rows of sql, columns divided by "|".
func (c *cluster) query(sql string) string {
	c.t.Helper()
	return strings.TrimSpace(run(c.t, pgTool(c.t, "psql", "-X", "-At", "-h", c.sockets, "-U", "postgres", "-c", sql, "postgres")))
}

// pgbench fills the cluster: a scale is about 15 MB.
func (c *cluster) pgbench(scale int) {
	c.t.Helper()
	run(c.t, c.pgbenchCommand("-i", "-q", "-s", fmt.Sprint(scale)))
}

func (c *cluster) pgbenchCommand(args ...string) *exec.Cmd {
	return pgTool(c.t, "pgbench", append(args, "-h", c.sockets, "-U", "postgres", "postgres")...)
}

// sessions counts those that connect and Take's helpers opened.
func (c *cluster) sessions() string {
	c.t.Helper()
	return c.query("select count(*) from pg_stat_activity where application_name = 'backup of a test'")
}

// awaitSessions waits until no more than that are left: a killed process's
// session ends with it, and the backup with the session.
func (c *cluster) awaitSessions(want string) {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.sessions() != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("a backup's session is left on the server")
		}
	}
}

// openRepository opens a repository of its own for the test.
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

// mustHoldNothing checks that nothing is left of a backup that failed.
func mustHoldNothing(t testing.TB, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, "*/*")); len(left) > 0 {
		t.Errorf("left in the repository: %v", left)
	}
}

// archive stands for the WAL archive: a slot holds the server's WAL, and what
// changed is read off the pages themselves.
type archive struct {
	c       *cluster
	conn    *pgx.Conn
	scanned time.Duration // that ChangedPages took
	gap     error         // what ChangedPages answers, if set
}

func newArchive(c *cluster) *archive {
	a := &archive{c: c, conn: c.connect()}
	if _, err := a.conn.Exec(context.Background(), "select pg_create_physical_replication_slot('archive_' || pg_backend_pid(), true, true)"); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// WaitFor implements WAL: what the server has flushed is in pg_wal.
func (a *archive) WaitFor(ctx context.Context, timeline uint32, lsn xlog.LSN) error {
	for {
		var there bool
		if err := a.conn.QueryRow(ctx, "select pg_current_wal_flush_lsn() >= $1::text::pg_lsn", lsn.String()).Scan(&there); err != nil || there {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// Covers implements WAL: the slot holds it all.
func (a *archive) Covers(uint32, xlog.LSN, xlog.LSN) error { return nil }

// ChangedPages implements WAL.
func (a *archive) ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (Changes, error) {
	defer func(begin time.Time) { a.scanned += time.Since(begin) }(time.Now())
	if a.gap != nil {
		return nil, a.gap
	}
	changes := scannedPages{}
	err := filepath.WalkDir(a.c.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(a.c.dir, path)
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

// layWAL puts the server's WAL into a restored directory, without the segments
// that the server has only made ready: pg_waldump may open one of those first
// and find no header in it.
func (a *archive) layWAL(dir string) {
	a.c.t.Helper()
	last := a.c.query("select pg_walfile_name(pg_current_wal_lsn())")
	names, _ := filepath.Glob(filepath.Join(a.c.dir, "pg_wal", "0*"))
	for _, name := range names {
		if filepath.Base(name) <= last {
			run(a.c.t, exec.Command("cp", name, filepath.Join(dir, "pg_wal")))
		}
	}
}

// restored restores a backup and lays the WAL beside it.
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
