package offsite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// restart ends the copying at once, and starts the appliance again after an act.
func (m *machine) restart(act func()) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	m.Offsite.Close(now)
	m.close(context.Background())
	act()
	m.start()
}

// remove removes the files below a directory whose names end in a suffix.
func remove(t *testing.T, dir, suffix string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, suffix, err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// wantLost expects that the newest checkpoint has at least what it had of some databases, and that their losses are named.
func (m *machine) wantLost(kind string, had map[string][]string) {
	m.t.Helper()
	m.awaitCheckpoint()
	var want []string
	for id, names := range had {
		want = append(want, id)
		now := m.names(id, kind)
		for _, name := range names {
			if !slices.Contains(now, name) {
				m.t.Errorf("the copy of %s lacks %s; it has %v", id, name, now)
			}
		}
	}
	slices.Sort(want)
	if st := m.Offsite.Status(); !slices.Equal(st.Unreadable, want) || st.State != model.OffsiteCopying {
		m.t.Errorf("%s, unreadable are %v, not %v", st.State, st.Unreadable, want)
	}
}

// wantGone expects that the newest checkpoint has nothing of some kind of a database, but for names that keep holds for, and
// that nothing is lost.
func (m *machine) wantGone(kind string, ids []string, keep func(name string) bool) {
	m.t.Helper()
	m.awaitCheckpoint()
	for _, id := range ids {
		if names := slices.DeleteFunc(m.names(id, kind), keep); len(names) > 0 {
			m.t.Errorf("the copy of %s still has %v", id, names)
		}
	}
	if st := m.Offsite.Status(); len(st.Unreadable) > 0 {
		m.t.Errorf("unreadable are still %v", st.Unreadable)
	}
}

func (m *machine) deleteBackups(database string, backups ...model.Backup) {
	m.t.Helper()
	for _, b := range backups {
		if err := m.Recovery.BackupDelete(m.call(model.ActionBackupDelete), database, b.ID); err != nil {
			m.t.Fatal(err)
		}
	}
}

// TestLostBackups: indexes and manifests that are missing at a start stay in the copy, which can restore the backups, also beside one
// that is made meanwhile, until these are removed.
func TestLostBackups(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := startMachine(t)
	backups, had := map[string][]model.Backup{}, map[string][]string{}
	var ids []string
	lost := map[string][]string{} // the directories whose files are missing
	for name, dirs := range map[string][]string{"index": {"index"}, "manifests": {"manifests"}, "all": {"index", "manifests", "packs"}} {
		db, _ := m.createDatabase(name)
		backups[db.ID] = []model.Backup{m.backUp(db.ID), m.backUp(db.ID)}
		ids, lost[db.ID] = append(ids, db.ID), dirs
	}
	m.awaitCheckpoint()
	for _, id := range ids {
		had[id] = m.names(id, offsite.KindRepository)
	}
	m.restart(func() {
		for id, dirs := range lost {
			for _, dir := range dirs {
				remove(t, filepath.Join(m.Recovery.BackupDirectory(id), "repository", dir), "")
			}
		}
	})
	m.wantLost(offsite.KindRepository, had)
	for _, id := range ids { // its chunks are not collected
		m.Recovery.CollectBackups(t.Context(), id)
	}
	m.restart(func() {})
	m.wantLost(offsite.KindRepository, had)
	for _, id := range ids { // which takes the names of no files of the others
		backups[id] = append(backups[id], m.backUp(id))
	}
	m.wantLost(offsite.KindRepository, had)
	dir := t.TempDir()
	if err := offsite.RestoreDatabases(t.Context(), m.at, dir, func(all []time.Time) int { return len(all) }); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		mustBeWhole(t, filepath.Join(dir, "backups", id, "repository"), len(backups[id]))
	}
	for _, id := range ids {
		m.deleteBackups(id, backups[id]...)
	}
	m.wantGone(offsite.KindRepository, ids, func(string) bool { return false })
}

// mustBeWhole expects a repository with so many backups, all whole.
func mustBeWhole(t *testing.T, dir string, backups int) {
	t.Helper()
	r, err := repository.OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Verify(t.Context(), nil)
	if err = errors.Join(err, report.Err(), r.Close()); err != nil || report.Backups != backups {
		t.Errorf("%s: %d backups are whole, not %d: %v", dir, report.Backups, backups, err)
	}
}

// fillWAL has a database complete a segment of its WAL, and waits until the archive has it compressed.
func (m *machine) fillWAL(database string, c databases.Connection) {
	m.t.Helper()
	compressed := func() int { return len(m.wal(database, ".zst")) }
	before := compressed()
	conn, err := pgx.Connect(m.t.Context(), c.URL())
	if err == nil {
		_, err = conn.Exec(m.t.Context(), "create table if not exists rows (v text); insert into rows select md5(n::text) from generate_series(1, 200000) n")
		err = errors.Join(err, conn.Close(context.Background()))
	}
	if err != nil {
		m.t.Fatal(err)
	}
	testenv.Within(m.t, time.Minute, "a compressed segment", func() bool { return compressed() > before })
}

// wal returns the paths of the files of a database's WAL whose names end in a suffix.
func (m *machine) wal(database, suffix string) []string {
	m.t.Helper()
	names, err := filepath.Glob(filepath.Join(m.Recovery.BackupDirectory(database), recovery.WALDirectory, "*", "*"+suffix))
	if err != nil {
		m.t.Fatal(err)
	}
	return names
}

// TestLostWAL: segments that are missing at a start stay in the copy as long as a backup needs them. So does everything of a
// database in the trash whose directory is gone, until it is removed for good.
func TestLostWAL(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := startMachine(t)
	db, c := m.createDatabase("db")
	trashed, _ := m.createDatabase("trashed")
	m.backUp(trashed.ID)
	first := m.backUp(db.ID)
	m.fillWAL(db.ID, c)
	m.fillWAL(db.ID, c)
	second := m.backUp(db.ID)
	if _, err := m.Databases.Delete(t.Context(), m.call(model.ActionDatabaseDelete), trashed.ID); err != nil {
		t.Fatal(err)
	}
	m.awaitCheckpoint()
	had := map[string][]string{
		db.ID:      m.wholeFrom(db.ID, first, m.names(db.ID, offsite.KindWAL)),
		trashed.ID: m.names(trashed.ID, offsite.KindWAL),
	}
	still := m.wholeFrom(db.ID, second, had[db.ID])
	if len(still) == 0 || len(had[db.ID]) <= len(still) || len(had[trashed.ID]) == 0 {
		t.Fatal(had, still)
	}
	backups := m.names(trashed.ID, offsite.KindRepository)
	m.restart(func() {
		for _, path := range m.wal(db.ID, ".zst") {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(m.Recovery.BackupDirectory(trashed.ID)); err != nil {
			t.Fatal(err)
		}
	})
	m.wantLost(offsite.KindWAL, had)
	if now := m.names(trashed.ID, offsite.KindRepository); !slices.Equal(now, backups) {
		t.Errorf("the copy has %v of the database in the trash, and had %v", now, backups)
	}
	if err := m.Databases.TrashPurge(m.call(model.ActionTrashPurge), trashed.ID); err != nil {
		t.Fatal(err)
	}
	m.deleteBackups(db.ID, first)
	m.wantLost(offsite.KindWAL, map[string][]string{db.ID: still})
	for _, kind := range []string{offsite.KindWAL, offsite.KindRepository} {
		if names := m.names(trashed.ID, kind); len(names) > 0 {
			t.Errorf("the copy still has %v of a database that is removed for good", names)
		}
	}
	m.deleteBackups(db.ID, second)
	m.wantGone(offsite.KindWAL, []string{db.ID}, func(name string) bool { return !slices.Contains(had[db.ID], name) })
}

// TestPurgedWhileLookedAt: a database that is being removed for good is not said to be unreadable, and the copy keeps what it has of
// it until its files are gone.
func TestPurgedWhileLookedAt(t *testing.T) {
	t.Parallel()
	m := startMachine(t)
	db, _ := m.createDatabase("db")
	m.backUp(db.ID)
	m.awaitCheckpoint()
	if _, err := m.Databases.Delete(t.Context(), m.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	if err := m.Core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(db.ID, func(d *model.Database) { d.Trash.Until = d.Trash.At })
	}); err != nil {
		t.Fatal(err)
	}
	if err := m.Recovery.CloseArchives(); err != nil {
		t.Fatal(err)
	}
	m.Core.Space.MeasureWith(func() (int64, error) { return 0, nil }) // the log cannot be read back
	m.awaitCheckpoint()
	if st := m.Offsite.Status(); len(st.Unreadable) > 0 {
		t.Errorf("unreadable are %v", st.Unreadable)
	}
	if names := m.names(db.ID, offsite.KindRepository); len(names) == 0 {
		t.Error("the copy has dropped a database whose files are here")
	}
	if err := m.Recovery.RemoveBackups(db.ID); err != nil {
		t.Fatal(err)
	}
	m.wantGone(offsite.KindRepository, []string{db.ID}, func(string) bool { return false })
}

// TestLostGenerations: when the whole archive is missing at a start, the copy keeps its WAL, and that of the present data still goes on
// from that of the data before a restore.
func TestLostGenerations(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := startMachine(t)
	db, c := m.createDatabase("db")
	first := m.backUp(db.ID)
	m.fillWAL(db.ID, c)
	if _, err := m.Recovery.BackupRestore(m.call(model.ActionBackupRestore), db.ID, first.ID, nil); err != nil {
		t.Fatal(err)
	}
	var owed []model.Backup
	testenv.Within(t, 2*time.Minute, "the backup after the restore", func() bool {
		list, err := m.Recovery.KeptBackups(db.ID)
		owed = slices.DeleteFunc(list, func(b model.Backup) bool { return b.ID == first.ID })
		return err == nil && len(owed) > 0 && len(m.Core.Claims.UnderWay()) == 0
	})
	m.fillWAL(db.ID, c)
	m.deleteBackups(db.ID, owed...)
	m.awaitCheckpoint()
	had := slices.DeleteFunc(m.names(db.ID, offsite.KindWAL), func(name string) bool {
		f, err := wal.ParseStored(name)
		return err != nil || f.IsPartial()
	})
	if !slices.ContainsFunc(had, func(name string) bool { return filepath.Dir(name) == "2" && filepath.Ext(name) == ".zst" }) {
		t.Fatal(had)
	}
	m.restart(func() {
		if err := os.RemoveAll(filepath.Join(m.Recovery.BackupDirectory(db.ID), recovery.WALDirectory)); err != nil {
			t.Fatal(err)
		}
	})
	m.wantLost(offsite.KindWAL, map[string][]string{db.ID: had})
	dir := t.TempDir()
	if err := offsite.RestoreDatabases(t.Context(), m.at, dir, func(all []time.Time) int { return len(all) }); err != nil {
		t.Fatal(err)
	}
	copied, err := wal.Open(filepath.Join(dir, "backups", db.ID, recovery.WALDirectory), wal.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	here, err := m.Recovery.WALArchive(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range []*wal.Archive{copied, here} {
		if present, err := archive.Generation(2); err != nil || present.Parent == nil || present.Parent.Generation != 1 {
			t.Errorf("the present data goes on from %+v, %v", present.Parent, err)
		}
	}
}

// TestWALOfTheLog: segments that the log has and no checkpoint yet stay in the copy when they are missing or unreadable, whether they
// get lost before a start or while the copy goes on.
func TestWALOfTheLog(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for name, when := range map[string]func(m *machine, lose func()){
		"before a start": (*machine).restart,
		"in a run":       func(_ *machine, lose func()) { lose() },
		"while the log cannot be read": func(m *machine, lose func()) {
			dir := filepath.Join(m.cfg.DataDir, recovery.VerificationDirectory)
			if err := os.Chmod(dir, 0); err != nil {
				m.t.Fatal(err)
			}
			m.loseUnread(lose)
			if err := os.Chmod(dir, 0o700); err != nil {
				m.t.Fatal(err)
			}
		},
		"while the disk has too little space for the log": func(m *machine, lose func()) {
			m.Core.Space.MeasureWith(func() (int64, error) { return core.SpaceMargin, nil })
			m.loseUnread(lose)
			if st := m.Offsite.Status(); st.Problem != "the disk of this machine has too little free space" {
				m.t.Errorf("the problem is that %s", st.Problem)
			}
			m.Core.Space.MeasureWith(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testWALOfTheLog(t, when)
		})
	}
}

// loseUnread loses WAL while the log cannot be read, and expects that no checkpoint ends the log.
func (m *machine) loseUnread(lose func()) {
	m.t.Helper()
	before := *m.Offsite.Status().Checkpoint
	lose()
	m.Offsite.CheckpointSoon()
	testenv.Within(m.t, time.Minute, "a checkpoint that fails", func() bool { return m.Offsite.Status().State == model.OffsiteFailing })
	if at := *m.Offsite.Status().Checkpoint; !at.Equal(before) {
		m.t.Error("a checkpoint has ended the log")
	}
}

func testWALOfTheLog(t *testing.T, when func(m *machine, lose func())) {
	m := startMachine(t)
	connections := map[string]databases.Connection{}
	loses := map[string]func(path string) error{} // how a database loses a segment
	for name, lose := range map[string]func(path string) error{
		"segments":   os.Remove,
		"unreadable": func(path string) error { return os.Chmod(path, 0) },
		"directory":  func(path string) error { return os.RemoveAll(filepath.Dir(filepath.Dir(filepath.Dir(path)))) },
	} {
		db, c := m.createDatabase(name)
		m.backUp(db.ID)
		connections[db.ID], loses[db.ID] = c, lose
	}
	m.awaitCheckpoint()
	for id, c := range connections {
		m.fillWAL(id, c)
		m.fillWAL(id, c)
	}
	m.awaitCopied()
	lost := map[string][]string{}
	for id := range connections {
		has := m.names(id, offsite.KindWAL)
		for _, path := range m.wal(id, ".zst") {
			if name := "1/" + filepath.Base(path); !slices.Contains(has, name) {
				lost[id] = append(lost[id], name)
			}
		}
		if len(lost[id]) == 0 {
			t.Fatal(has)
		}
	}
	when(m, func() {
		for id, names := range lost {
			for _, name := range names {
				if err := loses[id](filepath.Join(m.Recovery.BackupDirectory(id), recovery.WALDirectory, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	m.awaitCheckpoint()
	for id, names := range lost {
		now := m.names(id, offsite.KindWAL)
		for _, name := range names {
			whole := strings.TrimSuffix(name, ".zst") + ".partial-1000000"
			if !slices.Contains(now, whole) && !slices.Contains(now, name) {
				t.Errorf("the copy of %s lacks %s; it has %v", id, name, now)
			}
		}
	}
	dir := t.TempDir()
	if err := offsite.RestoreDatabases(t.Context(), m.at, dir, func(all []time.Time) int { return len(all) }); err != nil {
		t.Fatal(err)
	}
	for id, names := range lost {
		archive, err := wal.Open(filepath.Join(dir, "backups", id, recovery.WALDirectory), wal.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			f, err := wal.ParseStored(name)
			if err != nil {
				t.Fatal(err)
			}
			timeline, from, to, _ := f.Segment(16 << 20)
			if err := archive.Covers(1, timeline, from, to); err != nil {
				t.Errorf("the copy of %s does not give %s: %v", id, name, err)
			}
		}
	}
}

// wholeFrom returns the names among some that are of whole segments that a backup needs.
func (m *machine) wholeFrom(database string, b model.Backup, names []string) (needed []string) {
	m.t.Helper()
	b, err := m.Recovery.BackupGet(m.call(model.ActionBackupGet), database, b.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	start, err := xlog.ParseLSN(b.StartLSN)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, name := range names {
		f, err := wal.ParseStored(name) // not that of the beginning of a segment
		if err != nil {
			continue
		}
		if _, _, to, ok := f.Segment(16 << 20); ok && to > start {
			needed = append(needed, name)
		}
	}
	return needed
}
