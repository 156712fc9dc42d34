package postgrestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/postgres/binaries"
)

// Cluster is a bare PostgreSQL: a data directory with page checksums and the
// superuser postgres, on a Unix socket only. It does not use the product's
// configuration, roles and supervisor; see [Instance] for those.
type Cluster struct {
	Bin       binaries.Set
	Dir       string // the data directory
	SocketDir string
	Settings  []string      // name=value, applied at the next start
	Exited    chan struct{} // closed when the postmaster of the last start has ended

	tb      testing.TB
	process *exec.Cmd // nil when stopped
}

// NewCluster creates and starts a cluster whose WAL segments have segmentSize
// bytes. It is stopped when the test ends. All clusters of a test binary have the
// same system identifier.
func NewCluster(tb testing.TB, bin binaries.Set, segmentSize int, settings ...string) *Cluster {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "data")
	if err := copyTree(emptyCluster(tb, bin, segmentSize), dir, "-a"); err != nil {
		tb.Fatalf("copy data directory: %v", err)
	}
	return StartCluster(tb, bin, dir, settings...)
}

// NewForeignCluster is NewCluster with its own system identifier, which takes an
// initdb.
func NewForeignCluster(tb testing.TB, bin binaries.Set, segmentSize int, settings ...string) *Cluster {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "data")
	initdb(tb, bin, dir, segmentSize)
	return StartCluster(tb, bin, dir, settings...)
}

func initdb(tb testing.TB, bin binaries.Set, dir string, segmentSize int) {
	tb.Helper()
	Run(tb, Tool(bin, "initdb", "-k", "-N", "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8",
		"--wal-segsize="+strconv.Itoa(segmentSize>>20), "-D", dir))
}

// initMu lets one test at a time create the directory that the others copy.
var initMu sync.Mutex

// emptyCluster returns a data directory fresh from initdb, created once for the
// process.
func emptyCluster(tb testing.TB, bin binaries.Set, segmentSize int) string {
	tb.Helper()
	initMu.Lock()
	defer initMu.Unlock()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("initdb-%s-%d", bin.Version, segmentSize))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	making := dir + ".making"
	initdb(tb, bin, making, segmentSize)
	if err := os.Rename(making, dir); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// StartCluster starts PostgreSQL on dir and stops it when the test ends.
func StartCluster(tb testing.TB, bin binaries.Set, dir string, settings ...string) *Cluster {
	tb.Helper()
	c := StoppedCluster(tb, bin, dir, settings...)
	c.Start()
	return c
}

// StoppedCluster returns a cluster on dir that the test starts itself. It is
// stopped when the test ends.
func StoppedCluster(tb testing.TB, bin binaries.Set, dir string, settings ...string) *Cluster {
	tb.Helper()
	sockets, err := os.MkdirTemp("", "s")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{Bin: bin, Dir: dir, SocketDir: sockets, Settings: settings, tb: tb}
	tb.Cleanup(c.Stop)
	return c
}

// Tool returns a command that runs one of PostgreSQL's programs.
func Tool(bin binaries.Set, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(bin.Tool(name), args...)
	cmd.Env = append(bin.Env(), "TZ=UTC")
	return cmd
}

// Run runs a command that must succeed, and returns its output.
func Run(tb testing.TB, cmd *exec.Cmd) string {
	tb.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
	return string(out)
}

// Start starts the postmaster and waits until it accepts connections.
func (c *Cluster) Start() {
	c.tb.Helper()
	c.Launch()
	c.WaitReady()
}

// Launch starts the postmaster without waiting.
func (c *Cluster) Launch() {
	c.tb.Helper()
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.tb.Fatal(err)
	}
	defer log.Close()
	args := []string{
		"-D", c.Dir, "-k", c.SocketDir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB",
		"-c", "timezone=UTC",
	}
	for _, setting := range c.Settings {
		args = append(args, "-c", setting)
	}
	c.process = Tool(c.Bin, "postgres", args...)
	c.process.Stdout, c.process.Stderr = log, log
	if err := c.process.Start(); err != nil {
		c.tb.Fatal(err)
	}
	c.Exited = make(chan struct{})
	go func(p *exec.Cmd, exited chan struct{}) {
		_ = p.Wait()
		close(exited)
	}(c.process, c.Exited)
}

// WaitReady waits until the server accepts connections.
func (c *Cluster) WaitReady() {
	c.tb.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgconn.Connect(context.Background(), c.URL())
		if err == nil {
			conn.Close(context.Background())
			return
		}
		if time.Now().After(deadline) {
			c.tb.Fatalf("PostgreSQL does not start: %v\n%s", err, c.Log())
		}
	}
}

// Stop stops PostgreSQL by a fast shutdown, if it runs.
func (c *Cluster) Stop() { c.end(syscall.SIGINT) }

// Crash kills the postmaster and waits until its children have ended.
func (c *Cluster) Crash() {
	c.end(syscall.SIGKILL)
	for deadline := time.Now().Add(startTimeout); c.running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.tb.Fatal("PostgreSQL's processes outlive their postmaster")
		}
	}
	_ = os.Remove(filepath.Join(c.Dir, "postmaster.pid"))
}

// Kill kills the postmaster and does not wait for its children.
func (c *Cluster) Kill() { c.end(syscall.SIGKILL) }

func (c *Cluster) end(signal syscall.Signal) {
	if c.process == nil {
		return
	}
	_ = c.process.Process.Signal(signal)
	<-c.Exited
	c.process = nil
}

// running reports whether a process works in the data directory.
func (c *Cluster) running() bool {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if cwd, _ := os.Readlink(link); cwd == c.Dir {
			return true
		}
	}
	return false
}

func (c *Cluster) logFile() string { return filepath.Join(c.SocketDir, "log") }

// Log returns what the server has logged so far.
func (c *Cluster) Log() string {
	text, _ := os.ReadFile(c.logFile())
	return string(text)
}

// URL returns the connection string of the superuser to the database postgres.
func (c *Cluster) URL() string {
	return fmt.Sprintf("host=%s user=postgres dbname=postgres", c.SocketDir)
}

// Connect opens a session that is closed when the test ends.
func (c *Cluster) Connect() *pgx.Conn {
	c.tb.Helper()
	conn, err := pgx.Connect(context.Background(), c.URL())
	if err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
