package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

// dieInCutover ends the appliance in a cutover that is decided, after act.
func (a *appliance) dieInCutover(t testing.TB, record model.Import, act func()) {
	t.Helper()
	a.Core.Stop()
	a.Core.Work.Wait()
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Imports().Change(record.ID, func(i *model.Import) {
			now, follow := time.Now(), *i.Follow
			follow.Cut, follow.CutoverStartedAt = true, &now
			i.Status, i.Follow = model.ImportCuttingOver, &follow
		})
	}); err != nil {
		t.Fatal(err)
	}
	act()
	a.abandon(t)
}

// The next start does not complete a cutover after which the source was written to: the new database follows on. Where it
// cannot any more, the import says what is not here.
func TestImportCutoverWhoseSourceGoesOn(t *testing.T) {
	t.Parallel()
	for name, unsubscribed := range map[string]bool{"follows on": false, "cannot follow on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newRunning(t, postgrestest.Binaries(t), running)
			a := startMajors(t)
			record := a.follow(t, o, "")
			db, err := a.Databases.Record(record.Database)
			if err != nil {
				t.Fatal(err)
			}
			a.dieInCutover(t, record, func() {
				if unsubscribed {
					if err := a.Databases.Unsubscribe(t.Context(), db, record.Follow.Slot); err != nil {
						t.Fatal(err)
					}
				}
			})
			o.execute(t, "insert into customers select n, 'late' from generate_series(1001, 1007) n")
			a = a.reopenBusy(t)
			if !unsubscribed {
				a.awaitFollowing(t, record.ID)
				_, c := a.mustCutOver(t, o, record.ID)
				if got := answer[int](t, c, "select count(*) from customers"); got != 107 {
					t.Errorf("the new database has %d customers", got)
				}
				return
			}
			record = a.awaitImport(t, record.ID)
			if said := fmt.Sprint(record.Errors); record.Status != model.ImportCompletedWithErrors || !strings.Contains(said, "the source was written to after the cutover was decided") {
				t.Errorf("the import is %s: %s", record.Status, said)
			}
			o.checkNoSlot(t)
		})
	}
}

// Neither does it complete a cutover while a transaction at the source may still commit: the new database follows on, and gets
// what that commits. Where it cannot follow any more, the import says so.
func TestImportCutoverWhoseSourceHasATransaction(t *testing.T) {
	t.Parallel()
	const late = "insert into public.customers select n, 'late' from generate_series(1001, 1007) n"
	for name, c := range map[string]struct {
		begin, end   []string
		unsubscribed bool
	}{
		"open":                       {begin: []string{"begin", late}, end: []string{"commit"}},
		"prepared":                   {begin: []string{"begin", late, "prepare transaction 'left'"}, end: []string{"commit prepared 'left'"}},
		"open, and cannot follow on": {begin: []string{"begin", late}, end: []string{"rollback"}, unsubscribed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newRunning(t, postgrestest.Binaries(t), running, func(settings map[string]string) { settings["max_prepared_transactions"] = "2" })
			a := startMajors(t)
			record := a.follow(t, o, "")
			db, err := a.Databases.Record(record.Database)
			if err != nil {
				t.Fatal(err)
			}
			conn := o.Superuser(t, "app")
			execute := func(statements []string) {
				for _, sql := range statements {
					if _, err := conn.Exec(t.Context(), sql); err != nil {
						t.Fatalf("%s: %v", sql, err)
					}
				}
			}
			a.dieInCutover(t, record, func() {
				if c.unsubscribed {
					if err := a.Databases.Unsubscribe(t.Context(), db, record.Follow.Slot); err != nil {
						t.Fatal(err)
					}
				}
			})
			execute(c.begin)
			a = a.reopenBusy(t)
			if c.unsubscribed {
				record = a.awaitImport(t, record.ID)
				execute(c.end)
				if said := fmt.Sprint(record.Errors); record.Status != model.ImportCompletedWithErrors || !strings.Contains(said, "the source was written to after the cutover was decided") {
					t.Errorf("the import is %s: %s", record.Status, said)
				}
				return
			}
			a.awaitFollowing(t, record.ID)
			execute(c.end)
			_, connection := a.mustCutOver(t, o, record.ID)
			if got := answer[int](t, connection, "select count(*) from customers"); got != 107 {
				t.Errorf("the new database has %d customers", got)
			}
		})
	}
}

// The next start completes a cutover that was decided if the source was not written to since, or is gone.
func TestImportCutoverWhoseSourceRests(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	record := a.follow(t, o, "")
	a.dieInCutover(t, record, func() {})
	a = a.reopenBusy(t)
	record = a.awaitImport(t, record.ID)
	a.compare(t, o, record)
	a.checkTidy(t)
}
