package engine

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// failMetadata leaves the metadata as they are after a commit that could not be made durable, until repair is called.
func (a *appliance) failMetadata() (repair func()) {
	db := reflect.ValueOf(a.Core.Meta).Elem()
	mu := (*sync.Mutex)(unsafe.Pointer(db.FieldByName("capturing").UnsafeAddr()))
	failed := (*error)(unsafe.Pointer(db.FieldByName("failed").UnsafeAddr()))
	set := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		*failed = err
	}
	set(errors.Join(meta.ErrReadOnly, syscall.EIO))
	return func() { set(nil) }
}

// Nothing is removed of a database's backups while it is unknown whether the disk has the deletions that say so.
func TestBackupsStayWhileDeletionsAreNotDurable(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table big as select (select string_agg(md5(random()::text||n||g), '') from generate_series(1, 60) g) as x from generate_series(1, 8000) n")
	unlisted := a.backUp(t, db.ID)
	run(t, c, "drop table big")
	deleted := a.backUp(t, db.ID)
	a.backUp(t, db.ID)
	_, repo, err := a.Recovery.Archives(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []model.Backup{unlisted, deleted} {
		err = errors.Join(err, a.Recovery.MarkForDeletion(a.call(model.ActionBackupDelete), db.ID, b.ID))
	}
	if err = errors.Join(err, repo.Delete(unlisted.ID)); err != nil { // so chunks can be collected
		t.Fatal(err)
	}
	files := func() (paths []string) {
		root := a.Recovery.BackupDirectory(db.ID)
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.Contains(path, "partial") {
				paths = append(paths, strings.TrimPrefix(path, root))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return paths
	}
	missing := func(before []string) []string {
		now := files()
		return slices.DeleteFunc(slices.Clone(before), func(path string) bool { return slices.Contains(now, path) })
	}
	before := files()
	repair := a.failMetadata()
	for what, err := range map[string]error{"the sweep": a.Recovery.ExpireBackups(db.Database), "the removal of WAL": a.Recovery.PruneWAL(db.ID)} {
		if !errors.Is(err, meta.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	a.Recovery.CollectBackups(t.Context(), db.ID)
	if gone := missing(before); len(gone) > 0 {
		t.Errorf("these were removed: %q", gone)
	}
	repair()
	if err := a.Recovery.ExpireBackups(db.Database); err != nil {
		t.Fatal(err)
	}
	gone := missing(before)
	for _, part := range []string{"manifests", "packs", "wal"} {
		if !slices.ContainsFunc(gone, func(path string) bool { return strings.Contains(path, part) }) {
			t.Errorf("nothing of %s was removed afterwards, only %q", part, gone)
		}
	}
}
