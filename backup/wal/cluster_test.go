package wal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// testTimeout is how long anything in a test may take: a busy machine is slow, a
// hang is longer.
const testTimeout = 60 * time.Second

// smallSegment is the size of segments in most tests, in bytes: little work
// makes many of them.
const smallSegment = 1 << 20

// anotherMajor is PostgreSQL of another major version than the one tests run
// on, as downloaded by the product; kept for all runs.
func anotherMajor(t testing.TB) postgres.Binaries {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	major := 18
	if postgrestest.Binaries(t).Major == major {
		major = 17
	}
	search := postgres.Search{CacheDir: filepath.Join(cache, "holdfast-test", "real"), Installed: func() []string { return nil }}
	bin, err := search.FindMajor(t.Context(), major)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("find PostgreSQL %d: %v", major, err)
		}
		t.Skipf("PostgreSQL %d is not to be had: %v", major, err)
	}
	return bin
}

// eachMajor runs test on PostgreSQL of two major versions.
func eachMajor(t *testing.T, test func(t *testing.T, bin postgres.Binaries)) {
	t.Run("first", func(t *testing.T) {
		t.Parallel()
		test(t, postgrestest.Binaries(t))
	})
	t.Run("second", func(t *testing.T) {
		t.Parallel()
		test(t, anotherMajor(t))
	})
}

// cluster is a PostgreSQL of a test, on a socket only.
type cluster struct {
	t        testing.TB
	bin      postgres.Binaries
	dir      string // data directory
	sockets  string
	settings []string
	process  *exec.Cmd
	exited   chan struct{}
}

func tool(bin postgres.Binaries, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(bin.Tool(name), args...)
	cmd.Env = append(bin.Env(), "TZ=UTC")
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

// newCluster makes and starts a cluster with page checksums and segments of
// segmentSize bytes.
func newCluster(t testing.TB, bin postgres.Binaries, segmentSize int, settings ...string) *cluster {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	run(t, tool(bin, "initdb", "-k", "-N", "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8",
		"--wal-segsize="+strconv.Itoa(segmentSize>>20), "-D", dir))
	return startCluster(t, bin, dir, settings...)
}

// startCluster starts PostgreSQL on dir, until the test ends.
func startCluster(t testing.TB, bin postgres.Binaries, dir string, settings ...string) *cluster {
	t.Helper()
	sockets, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, bin: bin, dir: dir, sockets: sockets, settings: settings}
	c.start()
	t.Cleanup(c.stop)
	return c
}

func (c *cluster) logFile() string { return filepath.Join(c.sockets, "log") }

func (c *cluster) log() string {
	text, _ := os.ReadFile(c.logFile())
	return string(text)
}

// launch starts the postmaster, and does not wait.
func (c *cluster) launch() {
	c.t.Helper()
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	args := []string{
		"-D", c.dir, "-k", c.sockets, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB",
		"-c", "timezone=UTC", "-c", "max_prepared_transactions=10",
	}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	c.process = tool(c.bin, "postgres", args...)
	c.process.Stdout, c.process.Stderr = log, log
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.exited = make(chan struct{})
	go func(p *exec.Cmd, exited chan struct{}) {
		_ = p.Wait()
		close(exited)
	}(c.process, c.exited)
}

func (c *cluster) start() {
	c.t.Helper()
	c.launch()
	c.waitReady()
}

func (c *cluster) waitReady() {
	c.t.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgconn.Connect(context.Background(), c.url())
		if err == nil {
			conn.Close(context.Background())
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("PostgreSQL does not start: %v\n%s", err, c.log())
		}
	}
}

func (c *cluster) end(signal syscall.Signal) {
	if c.process == nil {
		return
	}
	_ = c.process.Process.Signal(signal)
	<-c.exited
	c.process = nil
}

// stop stops PostgreSQL fast, if it runs.
func (c *cluster) stop() { c.end(syscall.SIGINT) }

// crash ends the postmaster without a warning, and waits until its children
// have followed.
func (c *cluster) crash() {
	c.end(syscall.SIGKILL)
	for deadline := time.Now().Add(testTimeout); c.running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("PostgreSQL's processes outlive their postmaster")
		}
	}
	_ = os.Remove(filepath.Join(c.dir, "postmaster.pid"))
}

// running says whether a process works in the data directory.
func (c *cluster) running() bool {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if cwd, _ := os.Readlink(link); cwd == c.dir {
			return true
		}
	}
	return false
}

func (c *cluster) url() string {
	return fmt.Sprintf("host=%s user=postgres dbname=postgres", c.sockets)
}

// connect opens a session, closed when the test ends.
func (c *cluster) connect() *pgx.Conn {
	c.t.Helper()
	conn, err := pgx.Connect(context.Background(), c.url())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// do runs statements one by one, outside a transaction.
func (c *cluster) do(statements ...string) {
	c.t.Helper()
	conn := c.connect()
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			c.t.Fatalf("%.60s: %v", sql, err)
		}
	}
}

// ask returns the only column of the only row.
func (c *cluster) ask(sql string, args ...any) (answer string) {
	c.t.Helper()
	conn := c.connect()
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&answer); err != nil {
		c.t.Fatalf("%.60s: %v", sql, err)
	}
	return answer
}

func (c *cluster) lsn(sql string) xlog.LSN {
	c.t.Helper()
	lsn, err := xlog.ParseLSN(c.ask(sql))
	if err != nil {
		c.t.Fatal(err)
	}
	return lsn
}

func (c *cluster) flushed() xlog.LSN {
	c.t.Helper()
	return c.lsn("select pg_current_wal_flush_lsn()::text")
}

func (c *cluster) connectSQL(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, c.url())
}

// segments are the names of the segments in pg_wal, in order.
func (c *cluster) segments() []string {
	names, _ := filepath.Glob(filepath.Join(c.dir, "pg_wal", strings.Repeat("[0-9A-F]", 24)))
	return names
}

func TestMain(m *testing.M) {
	if task := os.Getenv(helperTask); task != "" {
		os.Exit(runHelper(task))
	}
	postgrestest.Main(m)
}
