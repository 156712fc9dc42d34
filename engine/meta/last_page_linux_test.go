package meta

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"holdfast/internal/testenv"
)

// failLastSync has the next commit report the error of its last sync, after all was written. after is called in between.
func failLastSync(db *DB, after func()) {
	db.capturing.Lock()
	defer db.capturing.Unlock()
	db.update = func(change func(*bbolt.Tx) error) error {
		if err := db.bolt.Update(change); err != nil {
			return err
		}
		db.update = db.bolt.Update
		after()
		return syscall.EIO
	}
}

// TestLastSyncFailsOnce: the commit is made durable by another sync, so it is neither refused nor made again.
func TestLastSyncFailsOnce(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	c := capture(t, db, 1<<20)
	failLastSync(db, func() {})
	called := 0
	if err := db.Update(func(tx *Tx) error {
		tx.OnCommit(func() { called++ })
		return tx.PutSetting("key", []byte("1"))
	}); err != nil || called != 1 {
		t.Errorf("the change returns %v, OnCommit was called %d times", err, called)
	}
	if got := settingsIn(c.Next(1<<20, time.Time{})); got != "key=1" {
		t.Errorf("captured %q", got)
	}
	failLastSync(db, func() {})
	add(db, 7)
	testenv.Eventually(t, "the queued change is applied", func() bool { return db.Applied() == 7 })
	if err := errors.Join(db.Flush(), db.Durable()); err != nil || count(t, db) != 1 {
		t.Errorf("one queued change was applied %d times: %v", count(t, db), err)
	}
}

// TestNoCommitUnderReadersAfterAFailedSync: bbolt has forgotten which pages of such a commit earlier readers still need, so
// nothing may be written before they have ended. Later readers are no hindrance.
func TestNoCommitUnderReadersAfterAFailedSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(filepath.Join(t.TempDir(), "meta.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, content := range []string{strings.Repeat("x", 1<<20), "", ""} { // pages to reuse: a file that grows waits for readers anyway
			update(t, db, set("filler", content))
		}
		var all sync.WaitGroup
		defer all.Wait()
		read := func() (end func()) {
			begun, ending := make(chan struct{}), make(chan struct{})
			all.Go(func() { _ = db.View(func(*Tx) error { close(begun); <-ending; return nil }) })
			<-begun
			return func() { close(ending) }
		}
		ends := []func(){read(), read()}
		failLastSync(db, func() {})
		var changed error
		answered := make(chan struct{})
		all.Go(func() {
			defer close(answered)
			changed = errors.Join(db.Update(set("key", "1")), db.Update(set("key", "2")))
		})
		synctest.Wait()
		defer read()() // it sees the commit whose sync failed
		for _, end := range ends {
			time.Sleep(2 * queueDelay)
			synctest.Wait()
			select {
			case <-answered:
				t.Error("the second change was committed under a reader of an earlier state")
			default:
			}
			end()
		}
		<-answered
		if changed != nil {
			t.Error(changed)
		}
	})
}

// TestLastCommitIsNotDurable: the page cannot be written again either. Nothing is committed after the commit that may be
// missing on the disk, and nothing is removed for it.
func TestLastCommitIsNotDurable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	update(t, db, set("before", "set"))
	add(db, 1)
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	var repair func()
	failLastSync(db, func() { repair = breakDisk(t, path) })
	failed := db.Update(set("uncertain", "set"))
	repair()
	add(db, 2)
	commits := func() uint64 {
		n, err := db.Commits()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := commits()
	for what, err := range map[string]error{
		"the change": failed, "a later one": db.Update(set("later", "set")), "a flush": db.Flush(),
		"the reserve": db.FillReserve(), "what was read": db.Durable(),
	} {
		if !errors.Is(err, ErrReadOnly) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := commits(); n != before || setting(t, db, "before") != "set" || setting(t, db, "later") != "" {
		t.Errorf("%d commits were made", n-before)
	}
	if n := count(t, db); n != 2 { // the queue is applied in memory
		t.Errorf("%d changes are there, want 2", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := openChecked(t, path)
	if err := errors.Join(again.Update(set("later", "set")), again.Durable()); err != nil || setting(t, again, "before") != "set" || again.Applied() != 1 {
		t.Errorf("after another start: %v, applied up to %d", err, again.Applied())
	}
}

// TestOpenWritesTheLastCommitAgain: the process before may have ended after the last sync failed. The content of the file
// does not change.
func TestOpenWritesTheLastCommitAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	update(t, db, set("before", "set"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bolt, file, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	if err := rewriteLastPages(bolt, file); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed, %v", err)
	}
	repair := breakDisk(t, path)
	defer repair()
	if err := rewriteLastPages(bolt, file); err == nil {
		t.Error("the pages were written to a file that is open for reading")
	}
}
