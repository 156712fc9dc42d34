package meta

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// Changes that a replayable journal already holds need no sync of their own.
// They wait in the write-behind queue, and the next transaction applies them
// first, in order.
const (
	// queueDelay is the longest time a queued change waits for a transaction.
	queueDelay = 250 * time.Millisecond
	// queueBatch is the maximum number of queued changes in one transaction.
	queueBatch = 1024
	// queueLimit is the capacity of the queue. Beyond it Enqueue blocks, unless the
	// disk accepts no transaction.
	queueLimit = 4 * queueBatch
	// appliedSetting stores the position of the newest applied change.
	appliedSetting = "journal.applied"
)

// queuedChange is a change and its position in the journal.
type queuedChange struct {
	position  uint64
	change    func(*Tx) error
	onError   func(*Tx, error) error
	failed    error // the error of change; onError runs in its place from then on
	committed []func()
}

func (d *queuedChange) run(tx *Tx) error {
	if d.failed != nil {
		return d.onError(tx, d.failed)
	}
	d.failed = d.change(tx)
	return d.failed
}

// writeBehindQueue holds the changes that wait to be applied.
type writeBehindQueue struct {
	mu      sync.Mutex
	changes []*queuedChange
	done    uint64 // number of changes ever applied
	notFull *sync.Cond
	err     error // why the last transaction failed
	ended   bool
	full    chan struct{} // signals that a full transaction's worth waits
}

func newWriteBehindQueue() *writeBehindQueue {
	b := &writeBehindQueue{full: make(chan struct{}, 1)}
	b.notFull = sync.NewCond(&b.mu)
	return b
}

// Enqueue queues change for the next transaction, after the changes queued before
// it; every later ViewFlushed and Update sees it. The caller has made the change
// durable at position of the journal, and replays what follows Applied when the
// file is opened again. Like a change of Update, it may run more than once. Its
// caller does not wait for it, so where change fails, as on a damaged record,
// onError runs in its place with the error; onError must not fail.
func (db *DB) Enqueue(position uint64, change func(*Tx) error, onError func(*Tx, error) error) {
	b := db.writeBehind
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.changes) >= queueLimit && b.err == nil && !b.ended {
		b.notFull.Wait()
	}
	b.changes = append(b.changes, &queuedChange{position: position, change: change, onError: onError})
	if len(b.changes) >= queueBatch {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// Accepting returns nil unless the queue is full because the disk accepts no
// transaction. Callers then refuse new changes instead of adding to the journal.
func (db *DB) Accepting() error {
	b := db.writeBehind
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) < queueLimit {
		return nil
	}
	return b.err
}

// Applied returns the journal position of the newest queued change that this
// file contains, 0 when there is none.
func (db *DB) Applied() uint64 {
	var position uint64
	_ = db.View(func(tx *Tx) error {
		position = appliedIn(tx)
		return nil
	})
	return position
}

func appliedIn(tx *Tx) uint64 {
	value := tx.Setting(appliedSetting)
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// some returns the changes of the next transaction.
func (b *writeBehindQueue) some() []*queuedChange {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes[:min(len(b.changes), queueBatch)]
}

// copies returns copies of the waiting changes, which a goroutine other than the
// commit loop can apply in memory.
func (b *writeBehindQueue) copies() []*queuedChange {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := make([]*queuedChange, len(b.changes))
	for i, d := range b.changes {
		changes[i] = &queuedChange{position: d.position, change: d.change, onError: d.onError}
	}
	return changes
}

// reached returns the number of changes ever queued and the number applied.
func (b *writeBehindQueue) reached() (all, done uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done + uint64(len(b.changes)), b.done
}

// applied removes the first n changes, which are durable now.
func (b *writeBehindQueue) applied(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append([]*queuedChange(nil), b.changes[n:]...)
	b.done += uint64(n)
	b.err = nil
	b.notFull.Broadcast()
}

// setError records why the changes could not be made durable.
func (b *writeBehindQueue) setError(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	b.notFull.Broadcast()
}

func (b *writeBehindQueue) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.notFull.Broadcast()
}

// errChangeFailed means that a queued change failed by itself.
var errChangeFailed = errors.New("a queued change failed")

// applyQueued applies the changes in the transaction. The caller rolls the
// transaction back after an error. After errChangeFailed, a change failed by itself,
// and the next attempt runs its replacement.
func applyQueued(bolt boltTx, changes []*queuedChange) error {
	if len(changes) == 0 {
		return nil
	}
	tx := &Tx{bolt: bolt, batch: newBatch()}
	for _, d := range changes {
		d.committed = nil
		tx.committed = &d.committed
		alone := d.failed == nil
		if err := d.run(tx); err != nil && alone {
			return errChangeFailed
		} else if err != nil {
			return err
		}
	}
	if err := tx.flushBatch(); err != nil {
		return err
	}
	newest := changes[len(changes)-1].position
	return tx.PutSetting(appliedSetting, binary.BigEndian.AppendUint64(nil, newest))
}

// Flush returns when every change queued before is committed.
func (db *DB) Flush() error {
	if all, done := db.writeBehind.reached(); done == all {
		return nil
	}
	return db.Update(func(*Tx) error { return nil }) // commits after everything queued before
}
