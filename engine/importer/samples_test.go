package importer

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:embed testdata/chinook.sql
var chinook string

//go:embed testdata/pagila.sql
var pagila string

// TestCopyOfSamples copies realistic databases completely.
func TestCopyOfSamples(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*origin){
		"chinook": func(o *origin) { run(t, o.Superuser(t, "app"), "set search_path = public;"+chinook) },
		"pagila":  func(o *origin) { run(t, o.Superuser(t, "app"), "set search_path = public;"+pagila) },
		"pgbench": func(o *origin) { o.pgbench(t, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := newOrigin(t, ""), newPlace(t)
			make(from)
			record, err := to.bring(t, from.source())
			if err != nil {
				t.Fatal(err)
			}
			if len(record.Errors) > 0 || record.TablesDone != record.TablesTotal || record.TablesTotal == 0 || record.RowsCopied == 0 {
				t.Errorf("the account: %+v", record)
			}
			there, here := from.Superuser(t, "app"), to.Superuser(t, "app")
			if diff := cmp.Diff(ask(t, there, contents), ask(t, here, contents)); diff != "" {
				t.Errorf("rows (-source +copy):\n%s", diff)
			}
			if diff := cmp.Diff(describe(t, from.Database), describe(t, to.Database)); diff != "" {
				t.Errorf("schema (-source +copy):\n%s", diff)
			}
		})
	}
}

// pgbench creates pgbench's tables at a scale.
func (o *origin) pgbench(t testing.TB, scale int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(o.Spec.Bin.Dir, "pgbench"), "-i", "-q", "-s", fmt.Sprint(scale), "--foreign-keys",
		"-h", "127.0.0.1", "-p", fmt.Sprint(o.Spec.Config.Port), "-U", "boss", "app")
	cmd.Env = append(cmd.Environ(), "PGPASSWORD="+o.password.Reveal())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
}
