package engine

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// execute runs statements at the source as a superuser.
func (o *origin) execute(t testing.TB, statements ...string) {
	t.Helper()
	conn := o.Superuser(t, "app")
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(t.Context(), "set search_path = public; "+sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// mustNotCutOver checks that a cutover is refused with a reason, which the status shows, too.
func (a *appliance) mustNotCutOver(t testing.TB, id, says string) {
	t.Helper()
	if _, err := a.cutOver(t, id); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), says) {
		t.Errorf("want %s: %v", says, err)
	}
	a.awaitTrouble(t, id, says)
}

func (a *appliance) awaitTrouble(t testing.TB, id, says string) {
	t.Helper()
	testenv.Within(t, 2*time.Minute, "the trouble: "+says, func() bool { return strings.Contains(a.importNow(t, id).Follow.Trouble, says) })
}

// A cutover is refused when the source no longer publishes what it did at the copy, or did not for a while: its changes
// since are lost. Another table in the publication, or one that was dropped, is no loss, and neither is another publication.
func TestImportFollowOfAChangedPublication(t *testing.T) {
	t.Parallel()
	o := newRunning(t, majorOf(t, 18), `create table t (id int primary key, v int); create table u (id int primary key, v int); create table dropped (id int primary key);
		create schema sales; create table sales.w (id int primary key, v int);
		insert into t select n, 0 from generate_series(1, 100) n; insert into u select n, 0 from generate_series(1, 100) n; insert into sales.w values (1, 0)`)
	changes := map[string]string{
		"lacks":    "drop table u",
		"had":      "drop table u; alter publication had add table u",
		"inserts":  "set (publish = 'insert')",
		"schemas":  "drop tables in schema sales",
		"filtered": "set table t, u where (id > 7), dropped",
		"none":     "",
		"same":     "",
	}
	a := startMajors(t)
	records := map[string]model.Import{}
	for name := range changes {
		o.execute(t, "create publication "+name+" for table t, u, dropped, tables in schema sales")
		records[name] = a.beginImport(t, imports.NewImport{
			Name: name, SourceURL: model.NewSecret(o.url()), Follow: true, Publication: name, Version: "18",
		})
	}
	for _, record := range records {
		a.awaitFollowing(t, record.ID)
	}
	for name, change := range changes {
		if change != "" {
			o.execute(t, "alter publication "+name+" "+change)
		}
	}
	o.execute(t, "drop publication none", "create table later (id int primary key)", "alter publication same add table later", "drop table dropped",
		"alter publication everything set (publish = 'insert')", "update t set v = 1", "update u set v = 1", "update sales.w set v = 1")
	for name, record := range records {
		if name != "same" {
			a.mustNotCutOver(t, record.ID, `publication "`+name+`"`)
			continue
		}
		record, err := a.cutOver(t, record.ID)
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), record.Database)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer[int](t, c, "select (select sum(v) from t) + (select sum(v) from u) + (select sum(v) from sales.w)"); got != 201 {
			t.Errorf("the changed rows are %d", got)
		}
	}
}

// A source that was set back, as to a snapshot of its disk, is followed no more, also when its log has passed the earlier
// position, and after a restart: what it has written since is lost.
func TestImportFollowOfASourceThatIsSetBack(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), "create table t (id int primary key, v int); insert into t select n, 0 from generate_series(1, 1000) n")
	a := startMajors(t)
	record := a.follow(t, o, "")
	snapshot := o.Spec.Dir + ".snapshot"
	restart := func(between ...string) {
		t.Helper()
		if err := o.Supervisor.Stop(t.Context(), o.Spec.ID); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(between[0], between[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := o.Supervisor.Start(t.Context(), o.Spec); err != nil {
			t.Fatal(err)
		}
	}
	setBack := func() {
		t.Helper()
		a.awaitTrouble(t, record.ID, "set back")
		a.mustNotCutOver(t, record.ID, "set back")
	}
	restart("cp", "-a", o.Spec.Dir, snapshot)
	const load = "select pg_logical_emit_message(false, 'load', repeat('x', 1000)) from generate_series(1, 10000)"
	o.execute(t, load, "update t set v = 1")
	changed := time.Now()
	target, err := a.Databases.Instances.ConnectLocal(t.Context(), record.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(t.Context())
	testenv.Within(t, time.Minute, "the changes", func() bool {
		var sum int
		err := target.QueryRow(t.Context(), "select sum(v) from public.t").Scan(&sum)
		lag := a.importNow(t, record.ID).Follow.Lag
		return err == nil && sum == 1000 && lag != nil && lag.At.After(changed)
	})
	if err := os.RemoveAll(o.Spec.Dir); err != nil {
		t.Fatal(err)
	}
	restart("mv", snapshot, o.Spec.Dir)
	o.execute(t, "update t set v = 7 where id <= 500")
	setBack()
	o.execute(t, load, load)
	setBack()
	a.abandon(t)
	a = a.reopenBusy(t)
	setBack()
}
