package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/internal/durable"
	"holdfast/internal/testenv"
)

// The pending operations of an older holdfast.db have ended since: a start with it removes none of their results.
func TestOlderMetadata(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	// What the copy records of each database, and what happened to it since.
	creating, _ := a.createDatabase(t, "creating")
	trashed, inTrash := a.createDatabase(t, "trashed")
	restored, c := a.createDatabase(t, "restored")
	run(t, c, "create table kept as select 1 as n")
	backup := a.backUp(t, restored.ID)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), trashed.ID); err != nil {
		t.Fatal(err)
	}
	status := func(s model.DatabaseStatus) {
		a.edit(t, creating.ID, func(d *model.Database) { d.Status = s })
	}
	status(model.DatabaseCreating)
	made, err := a.Core.MetadataBackup(a.call(model.ActionMetadataBackup))
	if err != nil {
		t.Fatal(err)
	}
	status(model.DatabaseAvailable)
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), trashed.ID); err != nil {
		t.Fatal(err)
	}
	run(t, inTrash, "create table later as select 2 as n")
	a.restore(t, restored.ID, backup.ID)
	blob := a.orphanBlob(t, strings.Repeat("x", 1<<20))
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made.Path, filepath.Join(a.cfg.DataDir, core.MetadataFile)); err != nil {
		t.Fatal(err)
	}

	by.Store(int64(core.OlderGrace - time.Hour)) // it expired in the trash long ago
	// The first start ends before the quarantine is complete: the next one goes on.
	obstacle := filepath.Join(a.cfg.DataDir, core.QuarantineDir, "blobs")
	if err := errors.Join(os.MkdirAll(filepath.Dir(obstacle), 0o700), os.WriteFile(obstacle, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	b := a.reopen(t)
	if err := errors.Join(b.sweepOnce(t.Context()), b.Close(t.Context()), os.Remove(obstacle)); err != nil {
		t.Fatal(err)
	}
	b = b.reopen(t)
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Databases.Record(creating.ID); !errors.Is(err, meta.ErrNotFound) {
		t.Errorf("the database under way: %v", err)
	}
	quarantined := func(pattern string) bool {
		found, err := filepath.Glob(filepath.Join(b.cfg.DataDir, core.QuarantineDir, pattern))
		return err == nil && len(found) == 1
	}
	for _, pattern := range []string{"*-" + creating.ID + "/1/PG_VERSION", "*-" + creating.ID + "-backups", "*-" + restored.ID + "-2"} {
		if !quarantined(pattern) {
			t.Errorf("%s is not in quarantine", pattern)
		}
	}
	testenv.Within(t, time.Minute, "the end of the quarantine", func() bool { return !b.quarantining.Load() })
	if !quarantined("blobs/" + string(blob)) {
		t.Error("the blob is not in quarantine")
	}
	if _, err := b.Databases.TrashRestore(t.Context(), b.call(model.ActionTrashRestore), trashed.ID); err != nil {
		t.Fatal(err)
	}
	if n := answer[int](t, inTrash, "select n from later"); n != 2 {
		t.Errorf("from the trash: %d", n)
	}
	b.restore(t, restored.ID, backup.ID) // under a number that was never used
	if n := answer[int](t, c, "select n from kept"); n != 1 {
		t.Errorf("restored anew: %d", n)
	}

	// The next start is a normal one.
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if older, err := openEngine(t, b.cfg).isOlder(); older || err != nil {
		t.Errorf("still older: %t, %v", older, err)
	}
}

// In older metadata the trash may contain what was restored since, and an expiry may be recorded that was removed
// since: nothing is removed during the grace period, however many starts there are.
func TestOlderMetadataKeepsObjects(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.ObjectTrashRetention = time.Hour
	by := ahead(&cfg)
	a := openEngine(t, cfg)
	days := 1
	bucket := a.bucket(t, "kept")
	if _, err := a.Objects.BucketUpdate(a.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	a.mustPut(t, bucket, "old", "1")
	a.mustPut(t, bucket, "trashed", "2")
	if err := a.deleteObject(bucket, "trashed"); err != nil {
		t.Fatal(err)
	}
	pass := func(d time.Duration, want int) {
		t.Helper()
		by.Add(int64(d))
		believe(a.Engine)
		if err := errors.Join(a.Objects.PurgeObjects(t.Context()), a.Objects.ExpireObjects(t.Context())); err != nil {
			t.Fatal(err)
		}
		list, err := a.Objects.TrashObjectList(a.call(model.ActionTrashObjectList), objects.TrashFilter{}, core.Page{})
		if _, getErr := a.Objects.ObjectGet(a.call(model.ActionObjectGet), bucket, "old"); err != nil || len(list.Items) != want || (getErr == nil) != (want > 0) {
			t.Errorf("after %v: the trash has %d, %v; the object that has expired: %v", d, len(list.Items), err, getErr)
		}
	}
	if err := a.recoverOlder(); err != nil {
		t.Fatal(err)
	}
	pass(25*time.Hour, 1)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = openEngine(t, cfg)
	pass(core.OlderGrace-26*time.Hour, 1)
	pass(2*time.Hour, 0)
}

// A start with older metadata keeps everything for the grace period even if the clock is years behind, as before the first
// time synchronization. One with a clock that is ahead does so no longer than that once the clock is right.
func TestOlderMetadataWithWrongClock(t *testing.T) {
	t.Parallel()
	const years = 10 * 365 * 24 * time.Hour
	for wrong, off := range map[string]time.Duration{"behind": -years, "ahead": years} {
		cfg := testConfig(t, newDataDir(t))
		by := ahead(&cfg)
		a := openEngine(t, cfg)
		if err := errors.Join(a.Core.BeginRetentions(), a.Core.KeepClock(), a.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		by.Store(int64(off))
		a = openEngine(t, cfg)
		if err := errors.Join(a.Core.BeginRetentions(), a.recoverOlder()); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			want  bool
		}{{0, true}, {core.OlderGrace - time.Hour, true}, {core.OlderGrace + time.Hour, false}} {
			by.Store(int64(step.after))
			believe(a.Engine)
			if step.after == 0 || wrong == "behind" {
				if got := a.Core.KeepsUnknown(); got != step.want {
					t.Errorf("%s, %v after the clock was set right: everything is kept: %t", wrong, step.after, got)
				}
			}
			if err := errors.Join(a.Core.KeepClock(), a.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			a = openEngine(t, cfg)
			if err := a.Core.BeginRetentions(); err != nil {
				t.Fatal(err)
			}
			if got := a.Core.KeepsUnknown(); got != step.want {
				t.Errorf("%s, at a start %v after the clock was set right: everything is kept: %t", wrong, step.after, got)
			}
		}
	}
}

// A newer copy that is put back does not know what was made with the older one, whose commits may be fewer.
func TestNewerMetadataPutBack(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	file := filepath.Join(cfg.DataDir, core.MetadataFile)
	dir := t.TempDir()
	copied := func(a *appliance, name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := durable.WriteStream(path, 0o600, a.Core.Meta.Snapshot); err != nil {
			t.Fatal(err)
		}
		return path
	}
	start := func(put string, want bool) *appliance {
		t.Helper()
		if put != "" {
			if err := os.Rename(put, file); err != nil {
				t.Fatal(err)
			}
		}
		a := openEngine(t, cfg)
		if older, err := a.isOlder(); older != want || err != nil {
			t.Errorf("with %q: older %t, %v", filepath.Base(put), older, err)
		}
		return a
	}
	end := func(a *appliance) {
		t.Helper()
		if err := errors.Join(a.noteCommits(), a.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	a := start("", false)
	older := copied(a, "older")
	for range 20 {
		if err := a.Core.KeepClock(); err != nil {
			t.Fatal(err)
		}
	}
	newer := copied(a, "newer")
	end(a)
	a = start(older, true)
	if err := a.recoverOlder(); err != nil {
		t.Fatal(err)
	}
	end(a)
	end(start("", false))
	a = start(newer, true)
	if err := a.recoverOlder(); err != nil {
		t.Fatal(err)
	}
	end(a)
	if err := os.WriteFile(a.commitsPath(), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	end(start("", true))
	end(start("", false))
}
