package meta

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// capture begins to capture the changes of a store, without a pause.
func capture(t testing.TB, db *DB, limit int64) *Capture {
	t.Helper()
	c, err := db.Capture(CaptureOptions{Limit: limit, Now: time.Now, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Resume()
	return c
}

// settingsIn returns the settings that transactions set, in order.
func settingsIn(redo []Redo) string {
	var names []string
	for _, r := range redo {
		for _, c := range r.Changes {
			names = append(names, fmt.Sprintf("%s=%s", c.Key, c.Value))
		}
	}
	return strings.Join(names, " ")
}

// dump returns the content of a store as text, made without what it is compared with.
func dump(t interface{ Fatal(args ...any) }, db *DB) string {
	var text strings.Builder
	var walk func(at string, b *bbolt.Bucket) error
	walk = func(at string, b *bbolt.Bucket) error {
		fmt.Fprintf(&text, "%s: %d\n", at, b.Sequence())
		return b.ForEach(func(key, value []byte) error {
			if child := b.Bucket(key); child != nil {
				return walk(fmt.Sprintf("%s/%q", at, key), child)
			}
			fmt.Fprintf(&text, "%s/%q = %q\n", at, key, value)
			return nil
		})
	}
	if err := db.bolt.View(func(tx *bbolt.Tx) error { return walk("", tx.Cursor().Bucket()) }); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestOnlyCommittedChangesAreCaptured mixes changes that succeed with others that fail,
// panic, or are queued and replaced.
func TestOnlyCommittedChangesAreCaptured(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, set("before", "1"))
	c := capture(t, db, 1<<20)
	update(t, db, set("a", "1"))
	failed := errors.New("no")
	if err := db.Update(func(tx *Tx) error { return errors.Join(set("b", "1")(tx), failed) }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = db.Update(func(tx *Tx) error { _ = set("c", "1")(tx); panic("no") })
	}()
	db.Enqueue(7, func(tx *Tx) error { return errors.Join(set("d", "1")(tx), failed) }, func(tx *Tx, _ error) error { return set("e", "1")(tx) })
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	update(t, db, func(*Tx) error { return nil })
	if got, want := settingsIn(c.Next(1<<20, time.Time{})), "a=1 e=1 journal.applied=\x00\x00\x00\x00\x00\x00\x00\x07"; got != want {
		t.Errorf("captured %q, want %q", got, want)
	}
	c.Close()
	update(t, db, set("f", "1"))
	if got := c.Next(1<<20, time.Time{}); len(got) > 0 {
		t.Errorf("captured %q after the end", settingsIn(got))
	}
}

// TestACapturePausesWhenItIsFull keeps what is before the first change that is missing.
func TestACapturePausesWhenItIsFull(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	c := capture(t, db, 4*(changeOverhead+10))
	for i := range 9 {
		update(t, db, set(fmt.Sprint(i), "1"))
	}
	if s := c.Status(); !s.Paused || s.Empty || s.Bytes > 4*(changeOverhead+10) {
		t.Errorf("the status is %+v", s)
	}
	c.Resume() // has no effect while something is in the queue
	first := c.Next(1, time.Time{})
	if got, want := settingsIn(first)+" "+settingsIn(c.Next(1<<20, time.Time{})), "0=1 1=1 2=1 3=1"; len(first) != 1 || got != want {
		t.Errorf("captured %q, want %q", got, want)
	}
	if s := c.Status(); !s.Paused || s.Oldest.IsZero() {
		t.Errorf("after a gap, the status is %+v", s)
	}
	update(t, db, set("missing", "1"))
	c.Resume()
	update(t, db, set("after", "1"))
	if got := settingsIn(c.Next(1<<20, time.Time{})); got != "after=1" {
		t.Errorf("captured %q after the pause", got)
	}
	if s := c.Status(); s.Paused || !s.Oldest.IsZero() || s.Bytes != 0 || s.Resumed != 2 {
		t.Errorf("without a change, the status is %+v", s)
	}
	update(t, db, func(tx *Tx) error { return tx.PutSetting("large", make([]byte, MaxChange+1)) })
	if s := c.Status(); !s.Paused || !s.Empty {
		t.Errorf("after a large change, the status is %+v", s)
	}
}

// TestOnlyOneCaptureExists also captures again after a Close.
func TestOnlyOneCaptureExists(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	first := capture(t, db, 1<<20)
	if _, err := db.Capture(CaptureOptions{Now: time.Now}); !errors.Is(err, ErrCaptured) {
		t.Errorf("a second one: %v", err)
	}
	first.Close()
	first.Close()
	second := capture(t, db, 1<<20)
	update(t, db, set("a", "1"))
	if got := settingsIn(second.Next(1, time.Time{})); got != "a=1" || !first.Status().Empty {
		t.Errorf("captured %q", got)
	}
}

// TestAChangeIsCapturedBeforeItsUpdateReturns runs several writers.
func TestAChangeIsCapturedBeforeItsUpdateReturns(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	c := capture(t, db, 16<<20)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprintf("setting %d", i)
			if err := db.Update(set(name, "1")); err != nil {
				t.Error(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if !strings.Contains(settingsIn(c.queue), name+"=1") {
				t.Errorf("%s is acknowledged and not captured", name)
			}
		})
	}
	all.Wait()
}
