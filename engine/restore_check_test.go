package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/backup/wal"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// archivedSegment returns a compressed segment that is neither the first nor the last of the WAL that a database writes
// from now on.
func (a *appliance) archivedSegment(t *testing.T, database string, c databases.Connection) (name, path string) {
	t.Helper()
	dir := filepath.Join(a.Recovery.BackupDirectory(database), "wal", "1")
	compressed := func() []string {
		all, err := filepath.Glob(filepath.Join(dir, "*.zst"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := compressed()
	run(t, c, "create table filler (t text)")
	for range 3 { // one segment of 16 MiB each
		run(t, c, "insert into filler select repeat(md5(n::text), 30) from generate_series(1, 18000) n")
	}
	testenv.Within(t, time.Minute, "compressed segments", func() bool { return len(compressed()) >= len(before)+3 })
	path = compressed()[len(before)+1]
	return strings.TrimSuffix(filepath.Base(path), ".zst"), path
}

func (a *appliance) phase(t *testing.T, operation string) string {
	t.Helper()
	var op model.DatabaseOperation
	if err := a.Core.Meta.View(func(tx *meta.Tx) (err error) {
		op, err = tx.Operations().Get(operation)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return op.Phase
}

// A restore reads all WAL that it needs before it writes or stops anything: both the dry run and the restore report
// damage anywhere in a segment, and a missing segment, and the database keeps running.
func TestRestoreChecksItsWAL(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	segment, path := a.archivedSegment(t, db.ID, c)
	at := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid := a.pid(t, db.ID)
	named := func(message string) bool {
		return strings.Contains(message, segment) && strings.Contains(message, "choose a moment")
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)-100] ^= 4
	for name, damage := range map[string]func() error{
		"a flipped byte near the end": func() error { return os.WriteFile(path, damaged, 0o600) },
		"a missing segment":           func() error { return os.Remove(path) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		_, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil)
		if model.CodeOf(err) != model.CodeConflict || !errors.Is(err, wal.ErrGap) || !named(model.PublicMessage(err)) {
			t.Errorf("%s: the dry run says: %v", name, err)
		}
		op, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil)
		if err == nil { // only reading the segment reveals it
			message := a.awaitOperation(t, op, model.OperationFailed)
			if phase := a.phase(t, op.ID); phase != "checking" {
				t.Errorf("%s: it failed when it was %s", name, phase)
			}
			err = errors.New(message)
		}
		if !named(err.Error()) && !named(model.PublicMessage(err)) {
			t.Errorf("%s: the restore says: %v", name, err)
		}
		if now := a.pid(t, db.ID); now != pid {
			t.Errorf("%s: the instance was restarted", name)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := steps(t, c); got != "1 2 3" {
		t.Errorf("steps: %s", got)
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	if got := steps(t, c); got != "1 2" {
		t.Errorf("steps after the restore: %s", got)
	}
	a.checkTidy(t)
}
