package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/model"
)

// The refusal of an upgrade stays short, and names what is refused, however long pg_upgrade's files are.
func TestRefusalOfLongOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1<<20)
	verbose := strings.Repeat("pg_restore: creating TABLE \"public.t\"\n", 100_000)
	for name, c := range map[string]struct{ file, text, says string }{
		"an object of a check": {"tables_with_oids.txt", "In database: shop\n  public." + long + "\n  public.short\n", "tables with oids: public.long long"},
		"many objects":         {"tables_with_oids.txt", strings.Repeat("t\n", 100_000), "and 9995 more"},
		"the statement that failed": {
			"log/pg_upgrade_dump_5.log", verbose + "pg_restore: while PROCESSING TOC:\npg_restore: from TOC entry 218; 1259 16446 VIEW old app\n" +
				"pg_restore: error: could not execute query: ERROR:  column x does not exist\nCommand was: " + long, "VIEW old app: column x does not exist",
		},
		"a statement with errors": {"log/pg_upgrade_utility.log", "psql:1: ERROR:  syntax error\n" + strings.Repeat("ERROR:  false\n", 100_000), "syntax error; false"},
		"an error":                {"log/pg_upgrade_utility.log", "psql:1: ERROR:  wrong: " + long, "wrong: long"},
	} {
		u := Upgrade{To: Spec{Dir: t.TempDir()}, Database: "shop"}
		path := filepath.Join(u.To.Dir, outputDir, "20250101T000000", c.file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(c.text), 0o600)); err != nil {
			t.Fatal(err)
		}
		refused := model.PublicMessage(u.explain(errors.New("exit status 1"), oldCluster{tenant: names{database: "shop"}}))
		if len(refused) > 6*4096 || !strings.Contains(refused, c.says) {
			t.Errorf("%s: %d bytes: %.300s", name, len(refused), refused)
		}
	}
}
