package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/durable"
	"holdfast/internal/testenv"
)

// A copy made under load is consistent, and an appliance can start from it: older data is there, and the files of newer
// data are quarantined, not removed.
func TestMetadataBackup(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	older, c := a.createDatabase(t, "older")
	run(t, c, "create table kept as select 1 as n")
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := a.Core.Change(a.call(model.ActionKeyList), func(*meta.Tx) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	made, err := a.Core.MetadataBackup(a.call(model.ActionMetadataBackup))
	close(stop)
	writers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	younger, _ := a.createDatabase(t, "younger")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made.Path, filepath.Join(a.cfg.DataDir, core.MetadataFile)); err != nil {
		t.Fatal(err)
	}
	b := a.reopen(t)
	b.awaitStatus(t, older.ID, model.DatabaseAvailable, 30*time.Second)
	if n := answer[int](t, c, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
	if _, err := b.Databases.Record(younger.ID); !errors.Is(err, meta.ErrNotFound) {
		t.Errorf("the younger database: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(b.cfg.DataDir, core.QuarantineDir, "*-"+younger.ID, "1", "PG_VERSION"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the younger database's files: %q, %v", kept, err)
	}
	if _, err := b.Core.AuditVerify(b.call(model.ActionAuditVerify)); err != nil {
		t.Errorf("the audit chain: %v", err)
	}
}

// TestMetadataCopyLeavesSpace: a copy that would take the space of the servers is refused and writes nothing, and one that did not
// end leaves nothing after the next.
func TestMetadataCopyLeavesSpace(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	dir := filepath.Join(a.cfg.DataDir, core.MetadataBackups)
	testenv.Within(t, 30*time.Second, "the first copy, by the sweep", func() bool {
		all, err := a.Core.MetadataCopies()
		return err == nil && len(all) == 1 && !a.Core.Claims.Holds(core.MetadataFile, "a copy of the metadata")
	})
	unfinished := filepath.Join(dir, core.MetadataCopy(time.Now().Add(-48*time.Hour))+durable.NewSuffix)
	if err := os.WriteFile(unfinished, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	names := func() (names []string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "holdfast-") {
				names = append(names, e.Name())
			}
		}
		return names
	}
	info, err := os.Stat(filepath.Join(a.cfg.DataDir, core.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	a.Core.Space.MeasureWith(func() (int64, error) { return info.Size()/2 + core.MinFreeSpace, nil })
	_, err = a.Core.MetadataBackup(a.call(model.ActionMetadataBackup))
	if refusal, ok := errors.AsType[*model.Error](err); !ok || refusal.Reason != model.ReasonNoSpace {
		t.Errorf("a copy that does not fit: %v", err)
	}
	if left := names(); len(left) != 1 {
		t.Errorf("after the refusal: %v", left)
	}
	a.Core.Space.MeasureWith(nil)
	if err := os.WriteFile(unfinished, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Core.MetadataBackup(a.call(model.ActionMetadataBackup)); err != nil {
		t.Fatal(err)
	}
	if left := names(); slices.Contains(left, filepath.Base(unfinished)) {
		t.Errorf("after a copy: %v", left)
	}
}

func TestMetadataIsBackedUpDaily(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	copies := func() int {
		t.Helper()
		if err := a.Core.BackUpMetadata(); err != nil {
			t.Fatal(err)
		}
		all, err := a.Core.MetadataCopies()
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	testenv.Within(t, 30*time.Second, "the first copy, by the sweep", func() bool {
		all, err := a.Core.MetadataCopies()
		return err == nil && len(all) == 1 && !a.Core.Claims.Holds(core.MetadataFile, "a copy of the metadata")
	})
	for day := range core.MetadataKept + 3 {
		by.Store(int64(day) * int64(core.MetadataInterval+time.Minute))
		if got, want := copies(), min(day+1, core.MetadataKept); got != want {
			t.Errorf("day %d: %d copies, not %d", day, got, want)
		}
	}
	newest, _ := a.Core.MetadataCopies()
	copies()
	if again, _ := a.Core.MetadataCopies(); !slices.Equal(newest, again) {
		t.Error("another copy on the same day")
	}

	for day := range core.MetadataKept { // the clock is set back: copies of future days are the first to be removed
		by.Store(int64(day-core.MetadataKept) * int64(core.MetadataInterval+time.Minute))
		if got := copies(); got != core.MetadataKept {
			t.Errorf("%d copies after the clock was set back", got)
		}
	}
	kept, _ := a.Core.MetadataCopies()
	for _, path := range kept {
		if filepath.Base(path) > core.MetadataCopy(a.Core.Clock().Add(time.Minute)) {
			t.Errorf("kept %s in place of a younger copy", filepath.Base(path))
		}
	}
}
