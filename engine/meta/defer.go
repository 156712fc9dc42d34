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
	// deferLimit is how many may wait; beyond that Defer makes its caller wait.
	deferLimit = 4 * deferBatch
	// deferSetting keeps the position of the newest change that was applied.
	deferSetting = "journal.applied"
)

// deferred is a change and where in the journal it stands.
type deferred struct {
	position  uint64
	change    func(*Tx) error
	committed []func()
}

// backlog is the changes that wait to be applied.
type backlog struct {
	mu      sync.Mutex
	changes []*deferred
	done    uint64 // how many were applied ever
	room    *sync.Cond
	ended   bool
	full    chan struct{} // has one when there is a transaction's worth
}

func newBacklog() *backlog {
	b := &backlog{full: make(chan struct{}, 1)}
	b.room = sync.NewCond(&b.mu)
	return b
}

// Defer has change made with the next transaction, after those deferred
// before it; every View and every Update that follows sees it. Whoever calls
// has made it durable at position of the journal, and replays what comes after
// Applied when the file is opened again. So change must not fail but for the
// disk, and like one of Update it may run more than once.
func (db *DB) Defer(position uint64, change func(*Tx) error) {
	b := db.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.changes) >= deferLimit && !b.ended {
		b.room.Wait()
	}
	b.changes = append(b.changes, &deferred{position: position, change: change})
	if len(b.changes) >= deferBatch {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// Applied returns the position of the newest deferred change that is in this
// file, 0 when there never was one.
func (db *DB) Applied() uint64 {
	var position uint64
	_ = db.Peek(func(tx *Tx) error {
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

// behind returns copies of the changes that follow a position: the first may be
// committed and not yet taken off.
func (b *backlog) behind(position uint64) []*deferred {
	b.mu.Lock()
	defer b.mu.Unlock()
	var changes []*deferred
	for _, d := range b.changes {
		if d.position > position {
			changes = append(changes, &deferred{position: d.position, change: d.change})
		}
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
	b.room.Broadcast()
}

func (b *backlog) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.room.Broadcast()
}

// applyDeferred makes the changes in the transaction.
func applyDeferred(bolt *bbolt.Tx, changes []*deferred) error {
	if len(changes) == 0 {
		return nil
	}
	tx := &Tx{bolt: bolt, tally: tally{}, logs: map[string]*auditLog{}}
	for _, d := range changes {
		d.committed = nil
		tx.committed = &d.committed
		if err := d.change(tx); err != nil {
			return err
		}
	}
	if err := errors.Join(tx.settleTally(), closeAuditLogs(tx.logs)); err != nil {
		return err
	}
	newest := changes[len(changes)-1].position
	return tx.PutSetting(deferSetting, binary.BigEndian.AppendUint64(nil, newest))
}

// flush returns when everything is applied that was deferred before.
func (db *DB) flush() error {
	if all, done := db.backlog.reached(); done == all {
		return nil
	}
	return db.Update(func(*Tx) error { return nil }) // which follows all of it
}
