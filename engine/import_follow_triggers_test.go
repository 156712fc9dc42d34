package engine

import (
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

// Triggers that fire also for replicated changes do so from the cutover on, and not for the source's changes, whose effects
// follow by themselves.
func TestImportFollowWithTriggersThatAlwaysFire(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running+`
		alter table orders enable always trigger note;
		comment on trigger note on orders is 'notes';
		create function stop() returns trigger language plpgsql as $$begin raise 'a replica'; end$$;
		create trigger stop before insert on days for each row execute procedure stop();
		alter table days enable replica trigger stop;
		create trigger off before insert on orders for each row execute procedure stop();
		alter table orders disable trigger off;`)
	a := startMajors(t)
	record := a.follow(t, o, "")
	for _, sql := range []string{"insert into public.orders (customer, cents) values (1, 77)", "insert into public.days values ('2026-12-31', 1)"} {
		if _, err := o.Superuser(t, "app").Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	_, c := a.mustCutOver(t, o, record.ID)
	const enabled = `select string_agg(tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text, ', ' order by tgrelid::regclass::text, tgname) from pg_trigger where not tgisinternal`
	if got, want := answer[string](t, c, enabled), "days stop R, days1 stop R, days2 stop R, orders note A, orders off D"; got != want {
		t.Errorf("after the cutover the triggers are %s", got)
	}
	if got := answer[string](t, c, "select obj_description(oid) from pg_trigger where tgname = 'note'"); got != "notes" {
		t.Errorf("the comment is %q", got)
	}
	run(t, c, "insert into orders (customer, cents) values (1, 9078)")
	if got := answer[int](t, c, `select count(*) from orders o join audit a on a."order" = o.id where cents = 9078`); got != 1 {
		t.Errorf("an order is noted %d times", got)
	}
	a.checkTidy(t)
}
