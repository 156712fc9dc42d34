package postgres_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// A tenant's policies do not fill the appliance's memory, neither by their length
// nor by their number. The test does not run in parallel: it measures the memory of
// the process.
func TestPoliciesAreBounded(t *testing.T) {
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, "create table t (s text)", "create policy a_short on t using (s = 'ä')")
	for n := range 4 {
		allowed(t, owner, fmt.Sprintf("create policy long%d on t using (s = '%s')", n, strings.Repeat("ä", 4<<20)))
	}
	allowed(t, owner, `do $$ begin for i in 1..1800 loop
		execute format('create table t%s (s text)', i);
		execute format('create policy many on t%s using (s = %L)', i, repeat('x', 20000)); end loop; end $$`)
	super := d.Superuser(t, "app")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tables, err := postgres.Tables(t.Context(), super)
	runtime.ReadMemStats(&after)
	if err != nil || len(tables) != 1801 || len(tables[0].Policies) != 5 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 40<<20 {
		t.Errorf("%d MB were taken", took>>20)
	}
	sum := 0
	for _, table := range tables {
		for _, p := range table.Policies {
			sum += len(*p.Using)
			cut := strings.HasSuffix(*p.Using, "…")
			if short := p.Name == "a_short"; short == cut || short && *p.Using != "(s = 'ä'::text)" {
				t.Errorf("%s: %d bytes, cut: %v", p.Name, len(*p.Using), cut)
			}
		}
	}
	if sum > 17<<20 {
		t.Errorf("all together have %d bytes", sum)
	}
}
