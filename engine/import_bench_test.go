package engine

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine/model"
)

// scale is that of the database that the benchmark of imports copies:
//
//	go test ./engine -run '^$' -bench Import -benchtime 3x -args -scale 50
var scale = flag.Int("scale", 10, "pgbench's scale of the database that is imported")

// BenchmarkImport measures an import, from the request until the database is
// available, and beside it pg_dump and pg_restore by hand, with two jobs each,
// into a database that is there already. The ratio of the two is what counts.
func BenchmarkImport(b *testing.B) {
	o := newOrigin(b, "select 1")
	b.Setenv("PGPASSWORD", o.password)
	b.Setenv("PGSSLMODE", "prefer")
	at := []string{"-h", "127.0.0.1", "-p", fmt.Sprint(o.Spec.Config.Port), "-U", "mover"}
	tool(b, o.Spec.Bin.Dir, "pgbench", append(at, "-i", "-q", "-s", fmt.Sprint(*scale), "app")...)
	a := startEngine(b)
	var ours, theirs time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		eventually(b, "a spare", func() bool { return a.spares.Ready() > 0 })
		b.StartTimer()
		began := time.Now()
		record, _ := a.imported(b, NewImport{Name: fmt.Sprintf("import%d", n), SourceURL: model.NewSecret(o.url())})
		ours += time.Since(began)
		b.StopTimer()
		a.discard(b, record.Database)
		theirs += a.byHand(b, o, at, fmt.Sprintf("hand%d", n))
		b.StartTimer()
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "s/import")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "s/by-hand")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio:time/pg_dump-and-pg_restore")
}

func (a *appliance) byHand(b *testing.B, o *origin, at []string, name string) time.Duration {
	b.Helper()
	db, c := a.createDatabase(b, name)
	defer a.discard(b, db.ID)
	dump := filepath.Join(b.TempDir(), "dump")
	began := time.Now()
	tool(b, o.Spec.Bin.Dir, "pg_dump", append(at, "-Fd", "-j2", "-f", dump, "app")...)
	b.Setenv("PGPASSWORD", c.Password.Reveal())
	tool(b, o.Spec.Bin.Dir, "pg_restore", "-j2", "--no-owner", "-h", c.Host, "-p", fmt.Sprint(c.Port), "-U", c.User, "-d", c.Database, dump)
	took := time.Since(began)
	b.Setenv("PGPASSWORD", o.password)
	if err := os.RemoveAll(dump); err != nil {
		b.Fatal(err)
	}
	return took
}

func (a *appliance) discard(b *testing.B, id string) {
	b.Helper()
	if _, err := a.DatabaseDelete(b.Context(), a.call(model.ActionDatabaseDelete), id); err != nil {
		b.Fatal(err)
	}
	if _, err := a.TrashEmpty(a.call(model.ActionTrashEmpty)); err != nil {
		b.Fatal(err)
	}
}

func tool(b *testing.B, dir, name string, args ...string) {
	b.Helper()
	if out, err := exec.CommandContext(b.Context(), filepath.Join(dir, name), args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
}
