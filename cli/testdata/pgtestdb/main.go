// Program bench prints how many milliseconds pgtestdb takes for each of a number of databases, a line each, from the
// request to the answer of the first query. It is a module of its own, so that the product does not depend on pgtestdb.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/peterldowns/pgtestdb"
)

// test is a test that ends when end is called.
type test struct{ cleanups []func() }

func (t *test) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (*test) Failed() bool       { return false }
func (*test) Helper()            {}
func (*test) Logf(string, ...any) {
}

func (*test) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func (t *test) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

type migrator struct{ schema string }

func (m migrator) Hash() (string, error) { return fmt.Sprintf("%x", len(m.schema)), nil }

func (m migrator) Migrate(ctx context.Context, db *sql.DB, _ pgtestdb.Config) error {
	_, err := db.ExecContext(ctx, m.schema)
	return err
}

func main() {
	port := flag.String("port", "5432", "of a server on 127.0.0.1 that trusts the user postgres")
	count := flag.Int("count", 10, "how many databases")
	schema := flag.String("schema", "create table t (n int)", "SQL of the template")
	flag.Parse()
	conf := pgtestdb.Config{DriverName: "pgx", Host: "127.0.0.1", Port: *port, User: "postgres", Password: "x", Database: "postgres", Options: "sslmode=disable"}
	for i := range *count + 1 {
		t := &test{}
		began := time.Now()
		db := pgtestdb.New(t, conf, migrator{*schema})
		if _, err := db.Exec("select 1"); err != nil {
			t.Fatalf("%v", err)
		}
		if i > 0 { // the first one makes the template
			fmt.Println(float64(time.Since(began).Microseconds()) / 1000)
		}
		t.end()
	}
}
