package postgres_test

import (
	"fmt"
	"strings"
	"testing"

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
