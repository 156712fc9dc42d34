package meta

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// set returns a change that stores a setting.
func set(name, value string) func(*Tx) error {
	return func(tx *Tx) error { return tx.PutSetting(name, []byte(value)) }
}

func setting(t testing.TB, db *DB, name string) (value string) {
	t.Helper()
	view(t, db, func(tx *Tx) error { value = string(tx.Setting(name)); return nil })
	return value
}

// outcome is the result of one Update.
type outcome struct {
	err   error
	panic any
}

// together runs the changes in one transaction, by queueing them in this order after one
// that is blocked.
func together(t *testing.T, db *DB, changes ...func(*Tx) error) []outcome {
	t.Helper()
	release, held := make(chan struct{}), make(chan struct{})
	var once, all sync.WaitGroup
	once.Go(func() {
		entered := sync.OnceFunc(func() { close(held) })
		if err := db.Update(func(*Tx) error { entered(); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-held
	outcomes := make([]outcome, len(changes))
	for i, change := range changes {
		all.Go(func() {
			defer func() { outcomes[i].panic = recover() }()
			outcomes[i].err = db.Update(change)
		})
		testenv.Eventually(t, "the change is queued", func() bool { return len(db.queue) == i+1 })
	}
	close(release)
	once.Wait()
	all.Wait()
	return outcomes
}

func TestFailingChangeLeavesOthers(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	refused := errors.New("refused")
	var runs, committed [5]int
	change := func(i int, err error) func(*Tx) error {
		return func(tx *Tx) error {
			runs[i]++
			tx.OnCommit(func() { committed[i]++ })
			return errors.Join(tx.PutSetting(fmt.Sprint(i), []byte("set")), err)
		}
	}
	outcomes := together(t, db, change(0, nil), change(1, refused), change(2, nil), change(3, refused), change(4, nil))
	for i, o := range outcomes {
		fails := i == 1 || i == 3
		if errors.Is(o.err, refused) != fails || !fails && o.err != nil {
			t.Errorf("change %d gives %v", i, o.err)
		}
		if got := setting(t, db, fmt.Sprint(i)); (got == "set") == fails {
			t.Errorf("change %d left %q", i, got)
		}
		if want := map[bool]int{false: 1, true: 0}[fails]; committed[i] != want {
			t.Errorf("OnCommit of change %d was called %d times, want %d", i, committed[i], want)
		}
	}
	if runs != [5]int{3, 1, 2, 1, 1} {
		t.Errorf("the changes ran %v times: they were not in one transaction, or more often than needed", runs)
	}
}

// TestChangesOfOneBatchSeeEachOther: if two changes claim the same name, one gets it even
// when they share a transaction.
func TestChangesOfOneBatchSeeEachOther(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	claim := func(id string) func(*Tx) error {
		return func(tx *Tx) error { return tx.Projects().Insert(project(id, "org_1", "one")) }
	}
	outcomes := together(t, db, claim("proj_1"), claim("proj_2"), claim("proj_3"))
	if outcomes[0].err != nil || !errors.Is(outcomes[1].err, ErrExists) || !errors.Is(outcomes[2].err, ErrExists) {
		t.Errorf("got %v", outcomes)
	}
}

func TestPanicReachesOnlyItsCaller(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	outcomes := together(t, db,
		set("before", "set"),
		func(tx *Tx) error { _ = tx.PutSetting("panics", []byte("set")); panic("boom") },
		set("after", "set"),
		func(tx *Tx) error { var none *model.Bucket; none.Name = "x"; return nil },
	)
	if outcomes[0] != (outcome{}) || outcomes[2] != (outcome{}) {
		t.Errorf("others got %v", outcomes)
	}
	if outcomes[1].panic != "boom" || outcomes[3].panic == nil {
		t.Errorf("the panics were %v and %v", outcomes[1].panic, outcomes[3].panic)
	}
	if setting(t, db, "before") != "set" || setting(t, db, "after") != "set" || setting(t, db, "panics") != "" {
		t.Error("a panic took others with it, or left a trace")
	}
	update(t, db, set("still", "going"))
}

// TestPanicDuringClose: the result may arrive through the end of the loop and must be the
// same.
func TestPanicDuringClose(t *testing.T) {
	t.Parallel()
	for range 30 {
		db, err := Open(filepath.Join(t.TempDir(), "meta.db"))
		if err != nil {
			t.Fatal(err)
		}
		var closing sync.WaitGroup
		closed := sync.OnceFunc(func() { closing.Go(func() { _ = db.Close() }) })
		outcomes := together(t, db, func(*Tx) error {
			closed()
			testenv.Eventually(t, "the store is closing", func() bool {
				select {
				case <-db.closing:
					return true
				default:
					return false
				}
			})
			panic("boom")
		})
		closing.Wait()
		if outcomes[0].panic != "boom" {
			t.Fatalf("got %v, want the panic", outcomes[0])
		}
	}
}

// TestOnCommit checks when the function runs: after the change is visible, when the store
// accepts more changes, and with its panic reaching the caller.
func TestOnCommit(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	var order []string
	update(t, db, func(tx *Tx) error {
		order = nil
		tx.OnCommit(func() { order = append(order, "first saw "+setting(t, db, "a")) })
		tx.OnCommit(func() {
			update(t, db, set("b", "set"))
			order = append(order, "second changed")
		})
		return tx.PutSetting("a", []byte("set"))
	})
	if fmt.Sprint(order) != "[first saw set second changed]" {
		t.Errorf("got %q", order)
	}
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic is lost")
			}
		}()
		_ = db.Update(func(tx *Tx) error { tx.OnCommit(func() { panic("boom") }); return nil })
	}()
	view(t, db, func(tx *Tx) error {
		tx.OnCommit(func() { t.Error("View called OnCommit") })
		return nil
	})
	update(t, db, set("still", "going"))
}

func TestViewIsASnapshotAndReadOnly(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, set("large", strings.Repeat("x", 1<<16))) // the file is not mapped anew during the view
	update(t, db, set("a", "old"))
	view(t, db, func(tx *Tx) error {
		var writing sync.WaitGroup
		writing.Go(func() { update(t, db, set("a", "new")) })
		writing.Wait()
		if got := string(tx.Setting("a")); got != "old" {
			t.Errorf("the snapshot has %q", got)
		}
		if err := tx.PutSetting("a", []byte("x")); !errors.Is(err, bolterrors.ErrTxNotWritable) {
			t.Errorf("writing in View gives %v", err)
		}
		return nil
	})
	if got := setting(t, db, "a"); got != "new" {
		t.Errorf("got %q", got)
	}
}

func TestConcurrentUpdatesAreAllThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	const writers, each = 32, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				id := fmt.Sprintf("proj_%d_%d", w, n)
				if err := db.Update(func(tx *Tx) error { return tx.Projects().Insert(project(id, "org_1", id)) }); err != nil {
					t.Error(err)
				}
				// From now on other transactions see it.
				view(t, db, func(tx *Tx) error { _, err := tx.Projects().Get(id); return err })
			}
		})
	}
	all.Wait()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := openChecked(t, path)
	view(t, again, func(tx *Tx) error {
		if got := countKeys(tx.Projects().bucket()); got != writers*each {
			t.Errorf("%d are there, want %d", got, writers*each)
		}
		return nil
	})
}

func TestClosed(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	never := func(*Tx) error { t.Error("called after Close"); return nil }
	for range 2 * maxBatch { // more than the capacity of the queue
		if err := db.Update(never); !errors.Is(err, ErrClosed) {
			t.Fatalf("Update gives %v, want ErrClosed", err)
		}
	}
	if err := db.View(never); !errors.Is(err, ErrClosed) {
		t.Errorf("View gives %v, want ErrClosed", err)
	}
}

// TestCloseDuringLoad checks that every Update returns, that acknowledged changes exist,
// and that refused ones do not.
func TestCloseDuringLoad(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		path := filepath.Join(t.TempDir(), "meta.db")
		db, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var acknowledged, refused sync.Map
		var count atomic.Int64
		var all sync.WaitGroup
		for w := range 64 {
			all.Go(func() {
				for n := 0; ; n++ {
					id := fmt.Sprintf("%d_%d", w, n)
					err := db.Update(set(id, "set"))
					if errors.Is(err, ErrClosed) {
						refused.Store(id, true)
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					acknowledged.Store(id, true)
					count.Add(1)
				}
			})
		}
		testenv.Eventually(t, "changes are made", func() bool { return count.Load() > int64(50*round) })
		var closers sync.WaitGroup
		for range 2 {
			closers.Go(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		finished := make(chan struct{})
		go func() { all.Wait(); closers.Wait(); close(finished) }()
		select {
		case <-finished:
		case <-time.After(20 * time.Second):
			t.Fatal("Close or an Update hangs")
		}
		again := openChecked(t, path)
		acknowledged.Range(func(id, _ any) bool {
			if setting(t, again, id.(string)) != "set" {
				t.Errorf("%s was acknowledged, and is lost", id)
			}
			return true
		})
		refused.Range(func(id, _ any) bool {
			if setting(t, again, id.(string)) != "" {
				t.Errorf("%s was refused, and is there", id)
			}
			return true
		})
	}
}
