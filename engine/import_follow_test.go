package engine

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// running is the schema of a production database: a sequence, a foreign key, a trigger that must not fire twice, a
// partitioned table, row security and a materialized view.
const running = `create table customers (id int primary key, name text not null);
	insert into customers select n, 'customer ' || n from generate_series(1, 100) n;
	create table orders (id bigserial primary key, customer int references customers, cents int, changes int default 0);
	create table audit (id bigserial primary key, "order" bigint);
	create function note() returns trigger language plpgsql as 'begin insert into public.audit ("order") values (new.id); return new; end';
	create trigger note after insert on orders for each row execute procedure note();
	insert into orders (customer, cents) select n % 100 + 1, n from generate_series(1, 5000) n;
	create table days (day date, n int, primary key (day, n)) partition by range (day);
	create table days1 partition of days for values from ('2026-01-01') to ('2026-07-01');
	create table days2 partition of days for values from ('2026-07-01') to ('2027-01-01');
	insert into days select '2026-01-01'::date + n, n from generate_series(0, 300) n;
	create materialized view totals as select customer, sum(cents) from orders group by 1;
	alter table customers enable row level security;
	alter table customers force row level security;
	create policy everybody on customers using (true);`

// content is a query for everything in running that must be the same on both sides.
const content = `select (select count(*) || ' ' || coalesce(sum(cents + changes), 0) from public.orders) || ' ' || (select count(*) || ' ' || sum("order") from public.audit)
	|| ' ' || (select count(*) || ' ' || sum(n) from public.days)`

// newRunning is newOrigin with PostgreSQL of another version, whose changes can be followed.
func newRunning(t testing.TB, bin binaries.Set, script string, change ...func(map[string]string)) *origin {
	t.Helper()
	o := &origin{password: "hunter2 kept to the importer"}
	settings := map[string]string{"wal_level": "logical", "max_wal_senders": "10", "fsync": "off"}
	for _, c := range change {
		c(settings)
	}
	o.Database = postgrestest.InstanceOf(t, bin, func(s *postgres.Spec) {
		s.HBA.Users = append(s.HBA.Users, "mover")
		s.HBA.Allow = append(s.HBA.Allow, netip.MustParsePrefix("::1/128"))
		s.Config.Settings = settings
	})
	messages := "select 1" // with 15 the user may write no messages into the log, as in a database of an appliance
	if bin.Major > 15 {
		messages = `do $$ declare f regprocedure; begin for f in select oid from pg_proc where proname = 'pg_logical_emit_message' loop
			execute format('grant execute on function %s to mover', f); end loop; end $$`
	}
	conn := o.Superuser(t, "app")
	for _, sql := range []string{
		"create role mover login replication bypassrls password '" + o.password + "'; grant pg_read_all_data to mover; grant connect on database app to mover",
		messages,
		"set search_path = public",
		script,
		"create publication everything for all tables",
	} {
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return o
}

// startMajors starts an engine that has every major version; the newest is its default.
func startMajors(t testing.TB) *appliance {
	t.Helper()
	cfg := testConfig(t, newDataDir(t))
	dirs := []string{postgrestest.Binaries(t).Dir}
	for _, major := range []int{16, 17, 18} {
		dirs = append(dirs, postgrestest.Major(t, major).Dir)
	}
	cfg.Search = binaries.Search{NoFetch: true, Installed: func() []string { return dirs }}
	return startEngineOn(t, cfg)
}

func majorOf(t testing.TB, major int) binaries.Set {
	t.Helper()
	if own := postgrestest.Binaries(t); own.Major == major {
		return own
	}
	return postgrestest.Major(t, major)
}

// writer writes to the source, and remembers what was acknowledged.
type writer struct {
	stop  chan struct{}
	wait  sync.WaitGroup
	mu    sync.Mutex
	acked []int64
}

func (w *writer) ack(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = append(w.acked, id)
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// write inserts and changes orders until stop is closed, one transaction after the other.
func (o *origin) write(t testing.TB) *writer {
	t.Helper()
	w := &writer{stop: make(chan struct{})}
	conn := o.Superuser(t, "app")
	w.wait.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-w.stop:
				return
			case <-time.After(time.Millisecond):
			}
			var id int64
			if err := conn.QueryRow(t.Context(), "insert into public.orders (customer, cents) values ($1, $2) returning id", n%100+1, n).Scan(&id); err != nil {
				t.Errorf("write: %v", err)
				return
			}
			w.ack(id)
			if n%3 == 0 {
				_, _ = conn.Exec(t.Context(), "update public.orders set changes = changes + 1 where id = $1", id-7)
				_, _ = conn.Exec(t.Context(), "delete from public.orders where id = $1", id-1000)
			}
		}
	})
	return w
}

func (w *writer) end() {
	close(w.stop)
	w.wait.Wait()
}

// follow starts an import that follows, and waits until it does.
func (a *appliance) follow(t testing.TB, o *origin, version string) model.Import {
	t.Helper()
	record := a.beginImport(t, imports.NewImport{
		Name: "shop", SourceURL: model.NewSecret(o.url()), Follow: true, Publication: "everything", Version: version,
	})
	return a.awaitFollowing(t, record.ID)
}

func (a *appliance) awaitFollowing(t testing.TB, id string) (record model.Import) {
	t.Helper()
	testenv.Within(t, 2*time.Minute, "the new database to follow", func() bool {
		record = a.importNow(t, id)
		if record.Status.Final() {
			t.Fatalf("the import is %s: %s %+v", record.Status, record.Error, record.Log)
		}
		return record.Status == model.ImportFollowing && record.Follow.Lag != nil && record.Follow.Trouble == ""
	})
	return record
}

func (a *appliance) cutOver(t testing.TB, id string) (model.Import, error) {
	t.Helper()
	return a.Imports.Cutover(t.Context(), a.call(model.ActionImportCutover), id)
}

// mustCutOver cuts over and compares the new database with the source.
func (a *appliance) mustCutOver(t testing.TB, o *origin, id string) (model.Import, databases.Connection) {
	t.Helper()
	record, err := a.cutOver(t, id)
	if err != nil {
		t.Fatalf("cutover: %v %+v", err, a.importNow(t, id))
	}
	return record, a.compare(t, o, record)
}

func (a *appliance) compare(t testing.TB, o *origin, record model.Import) databases.Connection {
	t.Helper()
	if !record.Status.Final() || record.Status == model.ImportFailed || record.Follow.SourceURL != nil || record.Follow.Pause <= 0 {
		t.Errorf("after the cutover: %+v", record)
	}
	for _, flaw := range record.Errors {
		t.Errorf("not as in the source: %s: %s", flaw.Object, flaw.Message)
	}
	a.awaitIdle(t)
	c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), record.Database)
	if err != nil {
		t.Fatal(err)
	}
	var want string
	if err := o.Superuser(t, "app").QueryRow(t.Context(), content).Scan(&want); err != nil {
		t.Fatal(err)
	}
	if got := answer[string](t, c, content); got != want {
		t.Errorf("the new database has %s, the source %s", got, want)
	}
	o.checkNoSlot(t)
	t.Logf("nobody could write for %v", record.Follow.Pause)
	return c
}

func (o *origin) checkNoSlot(t testing.TB) {
	t.Helper()
	conn := o.Superuser(t, "postgres")
	testenv.Within(t, 30*time.Second, "the end of the slot", func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) from pg_replication_slots").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// checkAcknowledged checks that every acknowledged row that was not deleted since is in the new database.
func checkAcknowledged(t testing.TB, o *origin, c databases.Connection, w *writer) {
	t.Helper()
	last := w.acked[len(w.acked)-1]
	if got := answer[int64](t, c, "select max(id) from orders"); got != last {
		t.Errorf("the last row is %d, and %d was acknowledged", got, last)
	}
	if got := answer[int64](t, c, "select nextval('orders_id_seq')"); got != last+1 {
		t.Errorf("the sequence goes on with %d after %d", got, last)
	}
}

// A database is followed from each major version into another while a writer runs, and cut over without a loss.
func TestImportFollows(t *testing.T) {
	t.Parallel()
	pairs := []struct{ from, to int }{{15, 16}, {16, 17}, {17, 18}, {18, 16}}
	if !testenv.IsLong() {
		pairs = pairs[:1]
	}
	for _, test := range pairs {
		t.Run(fmt.Sprintf("%d to %d", test.from, test.to), func(t *testing.T) {
			o := newRunning(t, majorOf(t, test.from), running)
			a := startMajors(t)
			w := o.write(t)
			record := a.follow(t, o, strconv.Itoa(test.to))
			if len(record.Follow.NotFollowed) == 0 || record.Follow.Slot == "" {
				t.Errorf("while it follows: %+v", record.Follow)
			}
			before := w.count()
			testenv.Within(t, time.Minute, "more rows", func() bool { return w.count() > before+500 })
			w.end()
			record, c := a.mustCutOver(t, o, record.ID)
			checkAcknowledged(t, o, c, w)
			if got := answer[string](t, c, `select (select count(*) from totals) || ' ' || (select relforcerowsecurity from pg_class where relname = 'customers')
				|| ' ' || (select count(*) from pg_subscription) || ' ' || current_setting('max_logical_replication_workers') || ' ' || current_setting('server_version_num')::int / 10000`); got != "100 true 0 0 "+strconv.Itoa(test.to) {
				t.Errorf("after the cutover: %s", got)
			}
			if _, err := a.cutOver(t, record.ID); model.CodeOf(err) != model.CodeConflict {
				t.Errorf("a second cutover: %v", err)
			}
			a.checkTidy(t)
		})
	}
}

// A change that cannot be applied is shown with PostgreSQL's error, and applied once its cause is gone; so is a lost slot.
func TestImportFollowShowsTrouble(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	record := a.follow(t, o, "")
	source := o.Superuser(t, "app")
	trouble := func(says string) {
		t.Helper()
		testenv.Within(t, time.Minute, says, func() bool { return strings.Contains(a.importNow(t, record.ID).Follow.Trouble, says) })
	}
	for _, sql := range []string{"create table public.late (n int primary key)", "alter table public.orders add column note text", "insert into public.orders (note) values ('new')"} {
		if _, err := source.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	trouble(`missing replicated column`)
	if _, err := source.Exec(t.Context(), "select pg_terminate_backend(active_pid) from pg_replication_slots where active"); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the slot to be dropped", func() bool {
		_, err := source.Exec(t.Context(), "select pg_drop_replication_slot(slot_name) from pg_replication_slots")
		return err == nil
	})
	trouble("has no replication slot")
	if _, err := a.cutOver(t, record.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a cutover without the slot: %v", err)
	}
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), record.Database); err != nil {
		t.Fatal(err)
	}
	a.awaitIdle(t)
	o.checkNoSlot(t)
	a.checkTidy(t)
}

// A cancelled import leaves no slot.
func TestImportFollowIsCancelled(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	record := a.follow(t, o, "")
	if _, err := a.Databases.OperationCancel(t.Context(), a.call(model.ActionOperationCancel), a.operationOf(t, record.Database)); err != nil {
		t.Fatal(err)
	}
	a.awaitIdle(t)
	if now := a.importNow(t, record.ID); now.Status != model.ImportFailed || !strings.Contains(now.Error, "cancelled") {
		t.Errorf("the import is %s: %s", now.Status, now.Error)
	}
	o.checkNoSlot(t)
	a.checkTidy(t)
}

func (a *appliance) operationOf(t testing.TB, database string) string {
	t.Helper()
	db, err := a.Databases.Record(database)
	if err != nil {
		t.Fatal(err)
	}
	return db.Operation
}

// showsStale waits until exactly these views are shown as those that cannot be filled.
func (a *appliance) showsStale(t *testing.T, id string, names ...string) {
	t.Helper()
	testenv.Within(t, 2*time.Minute, "the stale views "+strings.Join(names, ", "), func() bool {
		var stale []string
		for _, v := range a.importNow(t, id).Follow.StaleViews {
			if !strings.Contains(v.Message, "division by zero") || v.Since.IsZero() {
				t.Fatalf("shown as %+v", v)
			}
			stale = append(stale, v.Name)
		}
		return slices.Equal(stale, names)
	})
}

// Materialized views are filled before the cutover and again while the database follows, so the cutover does not wait for
// them; with row security that is forced on the owner it does, and hidden rows stay hidden.
func TestImportFollowFillsViews(t *testing.T) {
	t.Parallel()
	const views = `create table items (id int primary key, n int);
		insert into items select n, n from generate_series(1, 10) n;
		create materialized view sums as select sum(n) from items;
		create materialized view slow as select s.sum, clock_timestamp() as filled, pg_sleep(0.3)::text from sums s;
		create materialized view refused as select 1 / (count(*) - 11) from items;`
	const secret = `create table secrets (id int primary key); insert into secrets values (1), (2);
		alter table secrets enable row level security; alter table secrets force row level security;
		create policy one on secrets using (id = 1);
		create materialized view hidden as select count(*) from secrets;`
	for name, script := range map[string]string{"": views, "forced row security": views + secret} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newRunning(t, majorOf(t, 17), script)
			a := startMajors(t)
			a.Imports.ViewsInterval = 0
			record := a.follow(t, o, "18")
			target, err := a.Databases.Instances.ConnectLocal(t.Context(), record.Database)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close(t.Context())
			ask := func(query string) (got string) {
				if err := target.QueryRow(t.Context(), query).Scan(&got); err != nil {
					return err.Error()
				}
				return got
			}
			if _, err := o.Superuser(t, "app").Exec(t.Context(), "insert into public.items values (11, 100)"); err != nil {
				t.Fatal(err)
			}
			if name == "" {
				if got := ask("select count(*) from public.slow"); got != "1" {
					t.Errorf("when it follows, the view has %s rows", got)
				}
				filled := func(sum string, stale ...string) {
					t.Helper()
					testenv.Within(t, 2*time.Minute, "the view to be filled again", func() bool { return ask("select sum from public.slow") == sum })
					a.showsStale(t, record.ID, stale...)
				}
				filled("155", "public.refused")
				if _, err := o.Superuser(t, "app").Exec(t.Context(), "delete from public.items where id = 11"); err != nil {
					t.Fatal(err)
				}
				filled("55")
				if _, err := o.Superuser(t, "app").Exec(t.Context(), "insert into public.items values (11, 100)"); err != nil {
					t.Fatal(err)
				}
				filled("155", "public.refused")
			} else if got := ask("select count(*) from pg_class where relkind = 'm' and relispopulated"); got != "0" {
				t.Errorf("before row security is there, %s views are filled", got)
			}
			record, err = a.cutOver(t, record.ID)
			if err != nil {
				t.Fatal(err)
			}
			a.awaitIdle(t)
			c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), record.Database)
			if err != nil {
				t.Fatal(err)
			}
			if got := answer[string](t, c, "select sum::text from slow"); got != "155" {
				t.Errorf("the view has %s", got)
			}
			if inPause := answer[bool](t, c, "select filled > '"+record.Follow.CutoverStartedAt.Format(time.RFC3339Nano)+"' from slow"); inPause != (name != "") {
				t.Errorf("the view is filled in the cutover: %v", inPause)
			}
			if len(record.Errors) != 1 || record.Errors[0].Object != "MATERIALIZED VIEW DATA public.refused" || len(record.Follow.StaleViews) != 0 {
				t.Errorf("the flaws are %+v", record.Errors)
			}
			if old := strings.Contains(record.Errors[0].Message, "its rows are from before 20"); old != (name == "") {
				t.Errorf("the flaw says %s", record.Errors[0].Message)
			}
			if name != "" {
				if got := answer[string](t, c, "select count::text from hidden"); got != "1" {
					t.Errorf("row security does not hide rows from the view: %s", got)
				}
			}
			o.checkNoSlot(t)
			a.checkTidy(t)
		})
	}
}
