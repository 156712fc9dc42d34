package importer

import (
	"strings"
	"testing"
)

// TestCopyOfWhatRolesMeant: the import widens neither which rows the source's roles may see nor what runs as whom, and
// it reports the differences.
func TestCopyOfWhatRolesMeant(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create role reader; create role worker; create table t as select generate_series(1, 10) n; alter table t enable row level security;
		create policy shown on t to reader using (true); create policy hidden on t as restrictive to reader using (n > 5); create policy low on t using (n < 8);
		create function as_worker() returns int language sql security definer as 'select 1'; alter function as_worker() owner to worker;
		create function as_super() returns int language sql security definer as 'select 1';
		grant select on t to public`), newPlace(t)
	record, err := to.bring(t, from.source())
	if err != nil {
		t.Fatal(err)
	}
	flaws, log := "", ""
	for _, flaw := range record.Errors {
		flaws += flaw.Object + ": " + flaw.Message + "\n"
	}
	for _, line := range record.Log {
		log += line.Message + "\n"
	}
	for _, want := range []string{"POLICY public.t shown: the source has it for roles that are not here (reader): it is left out", "POLICY public.t hidden", "restricts everybody", "FUNCTION public.as_worker() of worker"} {
		if !strings.Contains(flaws, want) {
			t.Errorf("%s is not told:\n%s", want, flaws)
		}
	}
	for _, want := range []string{"public.as_super()", "belong to the new owner"} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is not said:\n%s", want, log)
		}
	}
	conn := to.Superuser(t, "app")
	run(t, conn, "create role reader; grant usage on schema public to reader; set role reader")
	if got := ask(t, conn, "select string_agg(n::text, ' ' order by n) from public.t"); got != "6 7\n" {
		t.Errorf("a role without a name in a policy sees %s", got)
	}
}
