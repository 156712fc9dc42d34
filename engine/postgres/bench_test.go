package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/certificates"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// BenchmarkCreate measures what a tenant waits for: from a ready data directory to
// the first login. The directories are built outside the measured time. Run it with
// -benchtime 20x.
func BenchmarkCreate(b *testing.B) {
	ca, err := certificates.LoadOrCreateCA(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s := postgres.NewSupervisor(postgres.SupervisorOptions{})
	defer func() { _ = s.Close(context.Background()) }()
	dir := b.TempDir()
	pool, err := postgres.NewWarmPool(postgres.WarmPoolOptions{Dir: filepath.Join(dir, "warm"), Want: 1, Bin: postgrestest.Binaries(b)})
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	b.ResetTimer()
	b.StopTimer()
	for n := range b.N {
		// Taking onto an existing directory builds one and leaves it ready.
		_ = pool.Take(b.Context(), dir)
		b.StartTimer()
		began := time.Now()
		create(b, s, pool, ca, filepath.Join(dir, "db"+strconv.Itoa(n)), 20000+n)
		took = append(took, time.Since(began))
		b.StopTimer()
		if err := s.Stop(b.Context(), "db"+strconv.Itoa(n)); err != nil {
			b.Fatal(err)
		}
	}
	pool.Close()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

func create(b *testing.B, s *postgres.Supervisor, pool *postgres.WarmPool, ca certificates.CA, dir string, port int) {
	b.Helper()
	ctx := b.Context()
	fatal := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	tenant := postgres.Tenant{
		Database: "shop", Owner: "shop", OwnerPassword: model.NewSecret("secret-secret"),
		ReadOnly: "shop_readonly", ReadOnlyPassword: model.NewSecret("secret-secret"),
	}
	fatal(pool.Take(ctx, dir))
	fatal(ca.Issue(certificates.InDataDirectory(dir), []string{"localhost", "127.0.0.1"}, 24*time.Hour))
	spec := postgres.Spec{
		ID: filepath.Base(dir), Bin: postgrestest.Binaries(b), Dir: dir,
		Config: postgres.Config{Port: port, Listen: []string{"127.0.0.1"}},
		HBA:    postgres.HBA{Database: "shop", Users: []string{"shop", "shop_readonly"}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
	fatal(s.Start(ctx, spec))
	conn, err := s.Connect(ctx, spec.ID, "postgres")
	fatal(err)
	fatal(postgres.Provision(ctx, conn, tenant))
	fatal(conn.Close(ctx))
	conn, err = pgx.Connect(ctx, fmt.Sprintf("postgres://shop:secret-secret@127.0.0.1:%d/shop?sslmode=require", port))
	fatal(err)
	fatal(conn.Close(ctx))
}

// BenchmarkIdle reports the memory of an idle instance: the sum of its
// processes' proportional set sizes.
func BenchmarkIdle(b *testing.B) {
	d := postgrestest.Instance(b)
	time.Sleep(2 * time.Second) // until its helper processes are idle
	var kib int
	for b.Loop() {
		kib = pssOf(d.Spec.Dir)
	}
	b.ReportMetric(float64(kib)/1024, "PSS-MB")
}

// pssOf sums the PSS of the processes that work in dir, in KiB.
func pssOf(dir string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	sum := 0
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || cwd != dir {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "smaps_rollup"))
		for line := range bytes.Lines(data) {
			if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "Pss:" {
				n, _ := strconv.Atoi(string(fields[1]))
				sum += n
			}
		}
	}
	return sum
}
