package meta

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// TestEveryWaiterHearsOfAFullDisk makes the disk fail during a batch.
func TestEveryWaiterHearsOfAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	update(t, db, set("before", "set"))
	for round := range 3 {
		repair := breakDisk(t, path)
		changes := make([]func(*Tx) error, 10)
		for i := range changes {
			changes[i] = func(tx *Tx) error {
				tx.OnCommit(func() { t.Error("OnCommit was called") })
				return tx.PutSetting(fmt.Sprint(i), make([]byte, 1<<uint(8+4*round))) // the last ones grow the file
			}
		}
		outcomes := togetherFailing(t, db, changes...)
		repair()
		for i, o := range outcomes {
			if o.err == nil || o.panic != nil || setting(t, db, fmt.Sprint(i)) != "" {
				t.Errorf("round %d, change %d: %v, and it left %d bytes", round, i, o, len(setting(t, db, fmt.Sprint(i))))
			}
		}
		if err := check(db); err != nil {
			t.Fatal(err)
		}
		update(t, db, set("after", "set"))
	}
	if setting(t, db, "before") != "set" || setting(t, db, "after") != "set" {
		t.Error("changes before or after are lost")
	}
}

// TestViewWithoutFreeSpace queues changes that the disk cannot take. A reader sees all of
// them, and they are applied once when the disk has space.
func TestViewWithoutFreeSpace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	repair := breakDisk(t, path)
	const n = queueBatch + 3
	for i := range n {
		o := object("bucket_1", fmt.Sprintf("key/%09d", i), i)
		o.Segment = 1
		enqueueOn(db, uint64(i+1), func(tx *Tx) error { return putOne(tx, o) })
	}
	look := func() (listed int, counted int64) {
		t.Helper()
		view(t, db, func(tx *Tx) error {
			found, _, err := tx.NewestObjects("bucket_1", "", "", 2*n)
			b, bucketErr := tx.Buckets().Get("bucket_1")
			listed, counted = len(found), b.ObjectCount
			return errors.Join(err, bucketErr)
		})
		return listed, counted
	}
	for range 2 {
		if listed, counted := look(); listed != n || counted != n {
			t.Errorf("without room: %d of %d are listed and %d counted", listed, n, counted)
		}
	}
	if got := db.Applied(); got != 0 {
		t.Errorf("applied up to %d without a disk", got)
	}
	repair()
	if listed, counted := look(); listed != n || counted != n || db.Applied() != n {
		t.Errorf("with room: %d of %d are listed and %d counted, applied up to %d", listed, n, counted, db.Applied())
	}
}

// TestQueueWithoutFreeSpace queues more changes than the limit on a full disk: no caller
// hangs, Accepting returns the error, and all changes are applied in the end.
func TestQueueWithoutFreeSpace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	repair := breakDisk(t, path)
	const n = queueLimit + 10
	for i := range n {
		if i < queueLimit && db.Accepting() != nil {
			t.Fatalf("the %dth may not be queued", i)
		}
		add(db, uint64(i+1))
	}
	if db.Accepting() == nil {
		t.Error("Accepting does not report the full disk")
	}
	repair()
	update(t, db, set("after", "set"))
	if got := count(t, db); got != n || db.Accepting() != nil {
		t.Errorf("%d of %d were applied, then %v", got, n, db.Accepting())
	}
}

// togetherFailing is together, but the change that blocks the others fails by itself and
// so does not touch the disk.
func togetherFailing(t *testing.T, db *DB, changes ...func(*Tx) error) []outcome {
	t.Helper()
	release, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { _ = db.Update(func(*Tx) error { close(held); <-release; return errors.New("leave me out") }) })
	<-held
	outcomes := make([]outcome, len(changes))
	for i, change := range changes {
		all.Go(func() {
			defer func() { outcomes[i].panic = recover() }()
			outcomes[i].err = db.Update(change)
		})
	}
	testenv.Eventually(t, "the changes are queued", func() bool { return len(db.queue) == len(changes) })
	close(release)
	all.Wait()
	return outcomes
}

// breakDisk replaces the store's descriptor by a read-only one, so that every write fails
// until the returned function is called.
func breakDisk(t testing.TB, path string) (repair func()) {
	t.Helper()
	putBack, err := replaceDescriptor(path, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := putBack(); err != nil {
			t.Fatal(err)
		}
	}
}

// replaceDescriptor replaces the store's descriptor by one that is opened with flag, until
// the returned function is called.
func replaceDescriptor(path string, flag int) (putBack func() error, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	other, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	for _, entry := range entries {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err != nil {
			return nil, err
		}
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err != nil || target != path || fd == int(other.Fd()) {
			continue
		}
		kept, err := syscall.Dup(fd)
		if err != nil {
			return nil, err
		}
		return func() error {
			return errors.Join(syscall.Dup3(kept, fd, syscall.O_CLOEXEC), syscall.Close(kept))
		}, syscall.Dup3(int(other.Fd()), fd, syscall.O_CLOEXEC)
	}
	return nil, errors.New("the store's descriptor is not found")
}

// TestUnmappedFileEndsTheProcess: a process that cannot map the file as it grows can read
// nothing any more. It ends, and another one finds everything.
func TestUnmappedFileEndsTheProcess(t *testing.T) {
	const inHelper = "HOLDFAST_META_UNMAPPED"
	if path := os.Getenv(inHelper); path != "" {
		growUnmapped(t, path)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestUnmappedFileEndsTheProcess$")
	cmd.Env = append(os.Environ(), inHelper+"="+path)
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "panic: the metadata cannot be read any more") {
		t.Errorf("the process ended with %v:\n%s", err, output)
	}
	if got := setting(t, openChecked(t, path), "before"); got != "set" {
		t.Errorf("before is %q", got)
	}
}

// growUnmapped runs in the process. It returns only if that goes on.
func growUnmapped(t *testing.T, path string) {
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	update(t, db, set("before", "set"))
	if _, err := replaceDescriptor(path, os.O_WRONLY); err != nil { // which cannot be mapped
		t.Fatal(err)
	}
	t.Errorf("the commit that grows the file: %v", db.Update(set("large", string(make([]byte, 8<<20)))))
}

// TestAFailedCommitIsNotCaptured makes the disk fail between two changes.
func TestAFailedCommitIsNotCaptured(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	c := capture(t, db, 1<<20)
	update(t, db, set("before", "1"))
	repair := breakDisk(t, path)
	if err := db.Update(set("failed", "1")); err == nil {
		t.Error("a full disk accepts a change")
	}
	repair()
	update(t, db, set("after", "1"))
	if got := settingsIn(c.Next(1<<20, time.Time{})); got != "before=1 after=1" {
		t.Errorf("captured %q", got)
	}
}
