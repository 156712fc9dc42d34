package wal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// testTimeout bounds every wait in a test: longer than a busy machine needs, shorter than a hang.
const testTimeout = 60 * time.Second

// smallSegment is the segment size in bytes in most tests: little work fills many segments.
const smallSegment = 1 << 20

// eachMajor runs test on the installed PostgreSQL and on the newest major version; on those between, only in runs
// of everything.
func eachMajor(t *testing.T, test func(t *testing.T, bin binaries.Set)) {
	t.Run("installed", func(t *testing.T) {
		t.Parallel()
		test(t, postgrestest.Binaries(t))
	})
	for _, major := range []int{16, 17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			if major != binaries.NewestRelease {
				testenv.All(t)
			}
			t.Parallel()
			test(t, postgrestest.Major(t, major))
		})
	}
}

// cluster is a PostgreSQL server whose WAL is archived.
type cluster struct {
	*postgrestest.Cluster
	t testing.TB
}

// serverSettings allow the transactions that the tests prepare.
var serverSettings = []string{"max_prepared_transactions=10"}

func newCluster(t testing.TB, bin binaries.Set, segmentSize int, settings ...string) *cluster {
	t.Helper()
	return &cluster{postgrestest.NewCluster(t, bin, segmentSize, slices.Concat(serverSettings, settings)...), t}
}

// do executes statements one by one, outside a transaction.
func (c *cluster) do(statements ...string) {
	c.t.Helper()
	conn := c.Connect()
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
	conn := c.Connect()
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
	return pgx.Connect(ctx, c.URL())
}

// segments returns the names of the segments in pg_wal, in order.
func (c *cluster) segments() []string {
	names, _ := filepath.Glob(filepath.Join(c.Dir, "pg_wal", strings.Repeat("[0-9A-F]", 24)))
	return names
}

func TestMain(m *testing.M) {
	if task := os.Getenv(helperTask); task != "" {
		os.Exit(runHelper(task))
	}
	postgrestest.Main(m)
}
