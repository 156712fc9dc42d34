package engine

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

// scale is pgbench's scale of the database that BenchmarkImport copies:
//
//	go test ./engine -run '^$' -bench Import -benchtime 3x -args -scale 50
var scale = flag.Int("scale", 10, "pgbench's scale of the database that is imported")

// BenchmarkImport compares an import, from the request until the database is available, with pg_dump and pg_restore run
// by hand, with two jobs each, into an existing database.
func BenchmarkImport(b *testing.B) {
	o := newOrigin(b, "select 1")
	b.Setenv("PGPASSWORD", o.password)
	b.Setenv("PGSSLMODE", "prefer")
	at := []string{"-h", "127.0.0.1", "-p", fmt.Sprint(o.Spec.Config.Port), "-U", "mover"}
	tool(b, o.Spec.Bin.Dir, "pgbench", append(at, "-i", "-q", "-s", fmt.Sprint(*scale), "app")...)
	a := startEngine(b)
	made := 0
	ours := func() float64 {
		made++
		return a.byImport(b, o, fmt.Sprintf("import%d", made)).Seconds()
	}
	arms := []rounds.Arm{
		{Name: "ours", Measure: ours},
		{Name: rounds.Itself, Measure: ours},
		{Name: "pg_dump-and-pg_restore", Measure: func() float64 {
			made++
			return a.byHand(b, o, at, fmt.Sprintf("hand%d", made)).Seconds()
		}},
	}
	c := rounds.Compare("ours", rounds.Itself, "pg_dump-and-pg_restore")
	for b.Loop() {
		for range rounds.Least {
			c.Round(arms...)
		}
	}
	b.ReportMetric(rounds.Median(c.Values("ours")), "s/import")
	b.ReportMetric(rounds.Median(c.Values("pg_dump-and-pg_restore")), "s/by-hand")
	c.Report(b, "time")
}

func (a *appliance) byImport(b *testing.B, o *origin, name string) time.Duration {
	b.Helper()
	testenv.Eventually(b, "a full warm pool", a.Databases.WarmPoolReady)
	began := time.Now()
	record, _ := a.imported(b, imports.NewImport{Name: name, SourceURL: model.NewSecret(o.url())})
	took := time.Since(began)
	a.discard(b, record.Database)
	return took
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
	if _, err := a.Databases.Delete(b.Context(), a.call(model.ActionDatabaseDelete), id); err != nil {
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
