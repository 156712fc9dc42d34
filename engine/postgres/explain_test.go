package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// Each major version plans statements with parameters, generically, and executes none.
func TestExplainOnEveryMajor(t *testing.T) {
	t.Parallel()
	for _, major := range []int{15, 16, 17, 18} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			bin := postgrestest.Binaries(t)
			if bin.Major != major {
				bin = postgrestest.Major(t, major)
			}
			explainOn(t, bin)
		})
	}
}

// A short statement whose plan or error is long is refused, and neither is read whole.
func TestExplainOfLongPlans(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Owner(t), "create table parts (n int) partition by range (n)",
		"do $$ begin for n in 1..400 loop execute format('create table part_%s partition of parts for values from (%s) to (%s)', n, n, n + 1); end loop; end $$",
		"create function raised() returns bool immutable language plpgsql as $$ begin raise warning '%', repeat('x', 4000000); return true; end $$")
	for name, statement := range map[string]string{
		"a long line":    "select from pg_class where relname::text = repeat('x', 4000000)",
		"many lines":     "select from parts where n % 7 = 1 and repeat('many lines', 100) <> n::text",
		"a long error":   "select repeat('9', 4000000)::int",
		"a long warning": "select from parts where raised()",
	} {
		conn := d.Owner(t)
		if plan, err := postgres.Explain(t.Context(), conn, statement); !errors.Is(err, postgres.ErrPlanTooLong) {
			t.Errorf("%s: %.300v, a plan of %d bytes", name, err, len(plan))
		}
		if !conn.IsClosed() {
			t.Errorf("%s was read whole", name)
		}
	}
	_, err := postgres.Explain(t.Context(), d.Owner(t), "select repeat('9é', 50000)::int")
	if fault, _ := postgres.StatementFault(err); len(fault) < 1000 || len(fault) > 5000 || !utf8.ValidString(fault) {
		t.Errorf("the error of a statement has %d bytes: %.100s", len(fault), fault)
	}
}

func explainOn(t *testing.T, bin binaries.Set) {
	d := postgrestest.InstanceOf(t, bin, func(*postgres.Spec) {})
	owner := d.Owner(t)
	if _, err := owner.PgConn().Exec(t.Context(), "create table orders (id int primary key, n int); insert into orders select g, g from generate_series(1, 5000) g; analyze orders").ReadAll(); err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]string{
		"select * from orders where id = $1":                               "Index Cond: (id = $1)",
		"select * from orders where id = $1 and n > $2 order by n":         "Filter: (n > $2)",
		"select count(*) from orders where n % $1 <> $2":                   "Filter: ((n % $1) <> $2)",
		"delete from orders where id between $1 and $2":                    "Delete on orders",
		"insert into orders values ($1, $2) on conflict do nothing":        "Conflict Resolution: NOTHING",
		"select * from orders":                                             "Seq Scan",
		"with gone as (delete from orders returning n) select * from gone": "CTE Scan",
	} {
		plan, err := postgres.Explain(t.Context(), d.Owner(t), statement)
		if err != nil || !strings.Contains(plan, want) {
			t.Errorf("%s: %v\n%s", statement, err, plan)
		}
	}
	for _, statement := range []string{"drop table orders", "analyze delete from orders", "select 1; drop table orders", "explain analyze delete from orders", "execute explained", ""} {
		if plan, err := postgres.Explain(t.Context(), d.Owner(t), statement); err == nil {
			t.Errorf("%s: %s", statement, plan)
		} else if fault, _ := postgres.StatementFault(err); fault == "" {
			t.Errorf("%s: %v", statement, err)
		}
	}
	var rows int
	if err := owner.QueryRow(t.Context(), "select count(*) from orders").Scan(&rows); err != nil || rows != 5000 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
