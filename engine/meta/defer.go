package meta

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// Changes that are durable somewhere else, in a journal that can be replayed,
// need no sync of their own here: they wait in a backlog and are applied, in
// their order, before whatever asks for a transaction next.
const (
	// deferDelay is how long a change waits at most until one applies what has
	// waited longest.
	deferDelay = 250 * time.Millisecond
	// deferBatch is how many are applied in one transaction.
	deferBatch = 1024
	// deferLimit is how many may wait; beyond that Defer makes its caller wait,
	// unless the disk takes none of them.
	deferLimit = 4 * deferBatch
	// deferSetting keeps the position of the newest change that was applied.
	deferSetting = "journal.applied"
)

// deferred is a change and where in the journal it stands.
type deferred struct {
	position  uint64
	change    func(*Tx) error
	instead   func(*Tx, error) error
	failed    error // of change, in whose place instead is made from then on
	committed []func()
}

func (d *deferred) run(tx *Tx) error {
	if d.failed != nil {
		return d.instead(tx, d.failed)
	}
	d.failed = d.change(tx)
	return d.failed
}

// backlog is the changes that wait to be applied.
type backlog struct {
	mu      sync.Mutex
	changes []*deferred
	done    uint64 // how many were applied ever
	room    *sync.Cond
	err     error // of the disk, with which the last could not be applied
	ended   bool
	full    chan struct{} // has one when there is a transaction's worth
}

func newBacklog() *backlog {
	b := &backlog{full: make(chan struct{}, 1)}
	b.room = sync.NewCond(&b.mu)
	return b
}

// Defer has change made with the next transaction, after those deferred
// before it; every ViewFlushed and every Update that follows sees it. Whoever calls
// has made it durable at position of the journal, and replays what comes after
// Applied when the file is opened again. Like a change of Update it may run more
// than once. Nobody is left to hear that it fails, as with a damaged record: then
// instead is made in its place, which is told why and must not fail.
func (db *DB) Defer(position uint64, change func(*Tx) error, instead func(*Tx, error) error) {
	b := db.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.changes) >= deferLimit && b.err == nil && !b.ended {
		b.room.Wait()
	}
	b.changes = append(b.changes, &deferred{position: position, change: change, instead: instead})
	if len(b.changes) >= deferBatch {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// Deferrable returns nil unless so much waits already that the disk does not
// take that it is better not to make more durable elsewhere.
func (db *DB) Deferrable() error {
	b := db.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) < deferLimit {
		return nil
	}
	return b.err
}

// Applied returns the position of the newest deferred change that is in this
// file, 0 when there never was one.
func (db *DB) Applied() uint64 {
	var position uint64
	_ = db.View(func(tx *Tx) error {
		position = appliedIn(tx)
		return nil
	})
	return position
}

func appliedIn(tx *Tx) uint64 {
	value := tx.Setting(deferSetting)
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// some returns the changes that are next.
func (b *backlog) some() []*deferred {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes[:min(len(b.changes), deferBatch)]
}

// copies returns what waits, for somebody beside the loop to apply in memory.
func (b *backlog) copies() []*deferred {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := make([]*deferred, len(b.changes))
	for i, d := range b.changes {
		changes[i] = &deferred{position: d.position, change: d.change, instead: d.instead}
	}
	return changes
}

// reached reports how many were ever deferred, and how many of them applied.
func (b *backlog) reached() (all, done uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done + uint64(len(b.changes)), b.done
}

// applied takes the first n changes off, which are durable now.
func (b *backlog) applied(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append([]*deferred(nil), b.changes[n:]...)
	b.done += uint64(n)
	b.err = nil
	b.room.Broadcast()
}

// stuck notes that the changes could not be made durable.
func (b *backlog) stuck(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	b.room.Broadcast()
}

func (b *backlog) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.room.Broadcast()
}

// errInstead says that a deferred change failed by itself.
var errInstead = errors.New("a deferred change failed")

// applyDeferred makes the changes in the transaction. After an error this is to
// be undone; while errInstead says that a change failed by itself, the next try
// goes on without that.
func applyDeferred(bolt *bbolt.Tx, changes []*deferred) error {
	if len(changes) == 0 {
		return nil
	}
	tx := &Tx{bolt: bolt, batch: newBatch()}
	for _, d := range changes {
		d.committed = nil
		tx.committed = &d.committed
		alone := d.failed == nil
		if err := d.run(tx); err != nil && alone {
			return errInstead
		} else if err != nil {
			return err
		}
	}
	if err := tx.settleBatch(); err != nil {
		return err
	}
	newest := changes[len(changes)-1].position
	return tx.PutSetting(deferSetting, binary.BigEndian.AppendUint64(nil, newest))
}

// Flush returns when every change deferred before is committed.
func (db *DB) Flush() error {
	if all, done := db.backlog.reached(); done == all {
		return nil
	}
	return db.Update(func(*Tx) error { return nil }) // which follows all of it
}
