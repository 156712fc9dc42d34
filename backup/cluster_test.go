package backup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/blobstore"
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
	return fmt.Sprintf("host=%s user=postgres dbname=%s", c.sockets, database)
}

// replication opens the kind of connection Take wants.
func (c *cluster) replication() *pgconn.PgConn {
	c.t.Helper()
	conn, err := pgconn.Connect(context.Background(), c.url("postgres")+" replication=yes")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// ordinary opens a connection that is not for replication.
func (c *cluster) ordinary() *pgconn.PgConn {
	c.t.Helper()
	conn, err := pgconn.Connect(context.Background(), c.url("postgres"))
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

// idle waits until no backup is left on the server.
func (c *cluster) idle() {
	c.t.Helper()
	sql := "select (select count(*) from pg_stat_activity where backend_type = 'walsender') + (select count(*) from pg_replication_slots)"
	for deadline := time.Now().Add(20 * time.Second); c.query(sql) != "0"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("a walsender or a slot is left on the server")
		}
	}
}

// openStore opens a store of its own for the test.
func openStore(t testing.TB) (store *blobstore.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	store, err := blobstore.Open(dir, blobstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store, dir
}

// mustHoldNothing checks that no blob and no unfinished file is left.
func mustHoldNothing(t testing.TB, storeDir string) {
	t.Helper()
	for _, pattern := range []string{"blobs/*/*", "incoming/*"} {
		if left, _ := filepath.Glob(filepath.Join(storeDir, pattern)); len(left) > 0 {
			t.Errorf("left in the store: %v", left)
		}
	}
}

// blobPath is where the store keeps a blob, for tests that damage it.
func blobPath(storeDir string, ref blobstore.Ref) string {
	return filepath.Join(storeDir, "blobs", string(ref[:8]), string(ref[9:]))
}
