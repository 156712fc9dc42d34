package engine

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/importer"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// An import that follows survives the deaths of the appliance and of the new database's server, one after the other and
// both at once, and a cutover that the appliance did not survive.
func TestImportFollowsAfterDeaths(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	w := o.write(t)
	record := a.follow(t, o, "17")
	a.kill(t, record.Database)
	a.abandon(t)
	a = a.reopenBusy(t)
	a.kill(t, record.Database) // while it resumes
	a.awaitFollowing(t, record.ID)
	a.kill(t, record.Database)
	testenv.Within(t, time.Minute, "the supervisor to bring the server back", func() bool {
		_, _, pid := a.Databases.Instances.Status(record.Database)
		return pid != 0
	})
	a.awaitFollowing(t, record.ID)
	a.abandon(t)
	before := w.count()
	testenv.Within(t, time.Minute, "rows while nobody is there", func() bool { return w.count() > before+100 })
	a = a.reopenBusy(t)
	a.awaitFollowing(t, record.ID)
	w.end()
	_, c := a.mustCutOver(t, o, record.ID)
	checkAcknowledged(t, o, c, w)
	a.checkTidy(t)
}

// A cutover that the appliance did not survive is asked for again, or was decided and is completed without a request.
func TestImportCutoverThatTheApplianceDoesNotSurvive(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	w := o.write(t)
	record := a.follow(t, o, "16")
	w.end()
	for n := 0; ; n++ {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = a.cutOver(t, record.ID)
		}()
		time.Sleep(time.Duration(n) * 15 * time.Millisecond) // ever later in the cutover
		a.abandon(t)
		<-ended
		a = a.reopenBusy(t)
		now := a.importNow(t, record.ID)
		t.Logf("killed after %d ms: %s", n*15, now.Status)
		if now.Status.Final() || now.Follow.Cut {
			record = a.awaitImport(t, record.ID)
			break
		}
		a.awaitFollowing(t, record.ID)
	}
	c := a.compare(t, o, record)
	checkAcknowledged(t, o, c, w)
	a.checkTidy(t)
}

// kill kills the server of a database.
func (a *appliance) kill(t testing.TB, id string) {
	t.Helper()
	if _, _, pid := a.Databases.Instances.Status(id); pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// reopenBusy is reopen for an appliance with an import that goes on.
func (a *appliance) reopenBusy(t testing.TB) *appliance {
	t.Helper()
	return startEngineOn(t, a.cfg)
}

// An appliance that dies in the copy fails the import, and its next start drops the slot.
func TestImportToFollowThatTheApplianceDoesNotSurvive(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), slow+"; alter table few replica identity full; alter table slow replica identity full")
	a := startMajors(t)
	record := a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url()), Follow: true, Publication: "everything"})
	a.awaitCopying(t, record.ID)
	a.abandon(t)
	next := a.reopen(t)
	if now := next.importNow(t, record.ID); now.Status != model.ImportFailed || !strings.Contains(now.Error, "start the import again") || now.Follow.SourceURL != nil {
		t.Errorf("after a restart the import is %s: %s", now.Status, now.Error)
	}
	o.checkNoSlot(t)
	next.checkTidy(t)
}

// A start that fails such an import and cannot reach the source records at once that the slot may remain and how to drop
// it, in case it dies too. The record no longer says so once the slot is dropped.
func TestImportToFollowWhoseSourceHangsAtTheNextStart(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), slow+"; alter table few replica identity full; alter table slow replica identity full")
	a := startMajors(t)
	record := a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url()), Follow: true, Publication: "everything"})
	a.awaitCopying(t, record.ID)
	a.abandon(t)
	_, _, source := o.Supervisor.Status(o.Spec.ID)
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(source, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP) // nobody gets a session
	defer func() { _ = syscall.Kill(source, syscall.SIGCONT) }()
	next := a.reopen(t)
	drop := importer.DropStatement(record.Follow.Slot)
	now := next.importNow(t, record.ID)
	if now.Status != model.ImportFailed || now.Follow.SourceURL != nil || !strings.Contains(now.Error, "start the import again") || !strings.Contains(now.Error, drop) {
		t.Errorf("while the source hangs the import is %s: %s", now.Status, now.Error)
	}
	signal(syscall.SIGCONT)
	o.checkNoSlot(t)
	testenv.Within(t, time.Minute, "the record without the slot", func() bool {
		now = next.importNow(t, record.ID)
		return !strings.Contains(now.Error, drop)
	})
	if !strings.Contains(now.Error, "start the import again") {
		t.Errorf("the slot is dropped, and the import's error is %q", now.Error)
	}
	next.checkTidy(t)
}
