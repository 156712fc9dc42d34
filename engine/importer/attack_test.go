package importer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// mallory is a role of the source that has privileges only on a schema of its own. Its function logs the user that it
// runs as.
const mallory = `create role mallory login password 'mallorys'; grant connect, create on database app to mallory;
	create schema m authorization mallory; set role mallory;
	create function m.run(int) returns int language plpgsql immutable as $$ begin raise log 'mallory runs as %', current_user; return $1; end $$;
	create sequence m.used; select nextval('m.used') from generate_series(1, 41); create sequence m.fresh; select setval('m.fresh', 7, false);
	create table m.t (last_value bigint, is_called bool); insert into m.t values (1, true); reset role`

// swaps are the replacements that an unprivileged user can make for a sequence that an import is about to read.
var swaps = map[string]string{
	"view": `drop sequence m.used; drop sequence m.fresh;
		create view m.used as select m.run(1)::bigint as last_value, true as is_called; create view m.fresh as select * from m.used`,
	// The planner evaluates constant expressions of indexes as the reader.
	"table with an index": `drop sequence m.used; drop sequence m.fresh;
		create table m.used (last_value bigint, is_called bool); create index on m.used ((m.run(1))); create table m.fresh (like m.used including all)`,
	"table with statistics": `drop sequence m.used; drop sequence m.fresh;
		create table m.used (last_value bigint, is_called bool); create statistics m.x on (m.run(1)), last_value from m.used; create table m.fresh (like m.used including all)`,
	"schema": `alter schema m rename to old; create schema m;
		create view m.used as select old.run(1)::bigint as last_value, true as is_called; create view m.fresh as select * from m.used;
		create view m.t as select * from m.used`,
}

// TestSourceRunsNoCode: while an import waits for a lock, an unprivileged user of the source replaces what the import
// reads with something that executes code. None of it runs as the import's user.
func TestSourceRunsNoCode(t *testing.T) {
	t.Parallel()
	for name, swap := range swaps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := newOrigin(t, mallory), newPlace(t)
			attacker := from.Superuser(t, "app")
			run(t, attacker, "set role mallory; begin;")
			watch := from.Superuser(t, "app")
			account := NewAccount(model.Import{}, time.Now)
			var attack sync.Once
			var committed sync.WaitGroup
			err := to.copyWith(t, from.source(), account, func(ctx context.Context, _ uint32) (*pgx.Conn, error) {
				if account.Snapshot().Phase == "schema" { // pg_dump has finished
					attack.Do(func() {
						run(t, attacker, swap)
						committed.Go(func() { commitWhenAwaited(t, watch, attacker, name == "schema") })
					})
				}
				return to.open(ctx)
			})
			committed.Wait()
			if err != nil {
				t.Fatal(err)
			}
			from.checkNothingRan(t)
			checkSequences(t, to, account.Snapshot(), name == "schema")
		})
	}
}

// commitWhenAwaited commits once the import waits for one of the attacker's locks, or at once.
func commitWhenAwaited(t *testing.T, watch, attacker *pgx.Conn, atOnce bool) {
	if !atOnce && !testenv.Poll(25*time.Second, func() bool {
		return ask(t, watch, "select count(*) from pg_locks l join pg_stat_activity s using (pid) where not l.granted and s.usename = 'boss'") != "0\n"
	}) {
		t.Error("the import waits for nothing")
	}
	run(t, attacker, "commit")
}

// checkNothingRan searches the server's log for the attacker's message, and for statements that name the attacker's
// objects where they could be run.
func (o *origin) checkNothingRan(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(o.Spec.Dir, "log", "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "mallory runs as boss") {
		t.Error("the attacker's function ran as the import's user")
	}
	asked := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "pg_export_snapshot") {
			asked++
		}
		if lower := strings.ToLower(line); strings.Contains(lower, `from "m".`) || strings.Contains(lower, `from m.`) {
			t.Errorf("the source was asked: %s", line)
		}
	}
	if asked == 0 {
		t.Error("the log has none of the import's statements")
	}
}

// checkSequences checks that a sequence that was not dropped is at the source's position, and that changes of others
// are reported.
func checkSequences(t *testing.T, to *place, record model.Import, kept bool) {
	t.Helper()
	told := fmt.Sprintf("%+v", record.Errors)
	for _, name := range []string{"m.used", "m.fresh"} {
		if strings.Contains(told, "SEQUENCE "+name) == kept {
			t.Errorf("%s was kept %v: %s", name, kept, told)
		}
	}
	if at := ask(t, to.Superuser(t, "app"), "select last_value, is_called from m.used"); kept && at != "41|t\n" {
		t.Errorf("the sequence is at %s", at)
	}
	warned := ""
	for _, line := range record.Log {
		if line.Level == model.ImportWarning {
			warned += line.Message + "\n"
		}
	}
	if kept && (!strings.Contains(warned, "m.fresh") || !strings.Contains(warned, `"mallory"`)) {
		t.Errorf("of the sequence that cannot be read is said: %s", warned)
	}
}

// TestSettingsOfSessions: every session with the source, including pg_dump's, expands no view and scans no foreign
// table except the system's, resolves names in pg_catalog, and hides no rows.
func TestSettingsOfSessions(t *testing.T) {
	t.Parallel()
	from := newOrigin(t, "alter role boss set restrict_nonsystem_relation_kind = ''; alter role boss set search_path = public; alter role boss set row_security = on")
	session, err := Open(t.Context(), from.source(), NewAccount(model.Import{}, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(context.Context) (*pgx.Conn, error){
		"reader": session.reader, "pg_dump's": session.describer,
		"of the present": func(ctx context.Context) (*pgx.Conn, error) { return session.another(ctx, session.enterNow) },
	} {
		conn, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ask(t, conn, `select current_setting('restrict_nonsystem_relation_kind'), current_setting('search_path'), current_setting('row_security'), current_setting('default_transaction_read_only')`)
		if got != "view, foreign-table|pg_catalog, pg_temp|off|on\n" {
			t.Errorf("%s: %s", name, got)
		}
		_ = conn.Close(t.Context())
	}
}

// TestPositionsOfSequences: a sequence that was set and not used since keeps its position if nobody could replace it
// with code, and otherwise moves past the values of its column.
func TestPositionsOfSequences(t *testing.T) {
	t.Parallel()
	const script = `create table t (id serial, n int); create sequence s; create sequence down increment -1;
		insert into t (id) values (5), (90); select setval('t_id_seq', 91, false), setval('s', 7, false), setval('down', -3)`
	const query = "select (select (last_value, is_called) from public.t_id_seq), (select (last_value, is_called) from public.s), (select (last_value, is_called) from public.down)"
	for owner, want := range map[string]string{"boss": `(91,f)|(7,f)|(-3,t)`, "app": `(91,f)|(1,f)|(-3,t)`} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			from, to := newOrigin(t, script+"; alter database app owner to "+owner), newPlace(t)
			record, err := to.bring(t, from.source())
			if err != nil || len(record.Errors) > 0 {
				t.Fatalf("%v, %+v", err, record.Errors)
			}
			if got := strings.TrimSpace(ask(t, to.Superuser(t, "app"), query)); got != want {
				t.Errorf("they are at %s, not %s", got, want)
			}
		})
	}
}
