package importer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// TestCopyOfWhatIsDropped drops objects while the source is read. Only these objects are missing from the copy.
func TestCopyOfWhatIsDropped(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]string{
		"sequence":   "drop sequence public.gone",
		"table":      "drop table public.going",
		"view":       "drop view public.seen",
		"index":      "drop index public.sorted",
		"function":   "drop function public.called()",
		"schema":     "drop schema other cascade",
		"type":       "drop type public.mood",
		"everything": "drop sequence public.gone; drop table public.going; drop view public.seen; drop function public.called(); drop schema other cascade",
		"replaced":   "drop table public.going; create view public.going as select 1 as n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := newOrigin(t, `create table kept as select generate_series(1, 100) n; create index sorted on kept (n); create sequence gone; create table going as select 1 as n;
				create view seen as select n from kept; create function called() returns int language sql as 'select 1'; create type mood as enum ('sad');
				create schema other; create table other.t as select 1 as n; create sequence other.s; select nextval('other.s')`), newPlace(t)
			owner := from.Superuser(t, "app")
			account := NewAccount(model.Import{}, time.Now)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			session, err := Open(ctx, from.source(), account)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			target, err := to.open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close(ctx)
			if err := session.Check(ctx, target); err != nil {
				t.Fatal(err)
			}
			run(t, owner, drop)
			if err := session.Copy(ctx, to.job(t, func(ctx context.Context) (*pgx.Conn, error) { return to.open(ctx) })); err != nil {
				t.Fatal(err)
			}
			record := account.Snapshot()
			if len(record.Errors) > 0 || ask(t, to.Superuser(t, "app"), "select count(*) from public.kept") != "100\n" {
				t.Errorf("%+v", record.Errors)
			}
		})
	}
}

// TestCopyOfWhatIsDroppedLater drops objects after the schema was described. Only these are missing, and they are
// reported.
func TestCopyOfWhatIsDroppedLater(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create table kept as select generate_series(1, 100) n; create sequence gone; create sequence stays; select nextval('gone'), nextval('stays')`), newPlace(t)
	owner := from.Superuser(t, "app")
	account := NewAccount(model.Import{}, time.Now)
	dropped := false
	err := to.copyWith(t, from.source(), account, func(ctx context.Context, _ uint32) (*pgx.Conn, error) {
		if account.Snapshot().Phase == "schema" && !dropped {
			dropped = true
			run(t, owner, "drop sequence public.gone")
		}
		return to.open(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	errors := account.Snapshot().Errors
	if len(errors) == 0 || errors[0].Object != "SEQUENCE public.gone" || !strings.Contains(errors[0].Message, "dropped") {
		t.Errorf("%+v", errors)
	}
	for _, flaw := range errors[min(1, len(errors)):] {
		if flaw.Object != "sequences" {
			t.Errorf("%+v", flaw)
		}
	}
	if got := ask(t, to.Superuser(t, "app"), "select (select count(*) from public.kept), last_value from public.stays"); got != "100|1\n" {
		t.Errorf("%s", got)
	}
}
