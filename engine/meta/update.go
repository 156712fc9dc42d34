package meta

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// maxBatch bounds how many changes share one sync, and so how much work one
// failing change makes the others repeat.
const maxBatch = 256

// commit is one change that waits to be made durable. It is the loop's until
// answered is closed, and then its caller's again.
type commit struct {
	change    func(*Tx) error
	committed []func()
	panic     any
	err       error
	answered  chan struct{}
}

func (c *commit) answer(err error) {
	c.err = err
	close(c.answered)
}

// View runs read on a consistent snapshot of what is committed, and waits for
// nothing. It must not be held across network or disk I/O: an open snapshot
// keeps old pages from being reused, and Update may have to wait for its end. So
// read must not call Update.
func (db *DB) View(read func(*Tx) error) error {
	err := db.bolt.View(func(tx *bbolt.Tx) error { return read(&Tx{bolt: tx}) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// ViewFlushed is View after a flush: read also sees every change deferred
// before. It waits for a commit while there are any, so it is for lists and
// totals of objects and for whatever else deferred changes are about. When the
// disk has no room for the flush, read sees the changes all the same, applied
// in memory.
func (db *DB) ViewFlushed(read func(*Tx) error) error {
	if db.Flush() != nil {
		return db.viewAhead(read)
	}
	return db.View(read)
}

// viewAhead applies what is deferred in memory alone, for the time of read.
func (db *DB) viewAhead(read func(*Tx) error) error {
	changes := db.backlog.copies()
	for {
		if err := db.tryAhead(changes, read); !errors.Is(err, errInstead) {
			return err
		}
	}
}

func (db *DB) tryAhead(changes []*deferred, read func(*Tx) error) error {
	bolt, err := db.bolt.Begin(true)
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("view what is deferred: %w", err)
	}
	defer bolt.Rollback()
	applied := appliedIn(&Tx{bolt: bolt})
	for len(changes) > 0 && changes[0].position <= applied {
		changes = changes[1:]
	}
	if err := applyDeferred(bolt, changes); err != nil {
		return err
	}
	return read(&Tx{bolt: bolt})
}

// Update makes change durable. Changes that queue while another is being
// synced are committed together, without a timer; when one of them returns an
// error it alone is left out and the others are run again. So change may run
// more than once and must only set what it captured, never add to it. What
// must happen exactly once, after success, goes into Tx.OnCommit. A change
// must not call Update; its panic reaches the caller of Update alone. An error
// of the disk in the very last sync leaves open what a restart will find.
func (db *DB) Update(change func(*Tx) error) error {
	c := &commit{change: change, answered: make(chan struct{})}
	select {
	case db.queue <- c:
	case <-db.done:
		return ErrClosed
	}
	select {
	case <-c.answered:
	case <-db.done:
		select { // the loop has ended, and it answers what it tries before it does
		case <-c.answered:
		default:
			return ErrClosed
		}
	}
	return c.end()
}

// end does what is left to the goroutine that asked for the change.
func (c *commit) end() error {
	if c.panic != nil {
		panic(c.panic)
	}
	if c.err == nil {
		for _, then := range c.committed {
			then()
		}
	}
	return c.err
}

func (db *DB) commitLoop() {
	defer close(db.done)
	ticker := time.NewTicker(deferDelay)
	defer ticker.Stop()
	for {
		select {
		case c := <-db.queue:
			db.commitAfterDeferred(db.gather(c))
		case <-db.backlog.full:
			_ = db.commit(nil) // the next transaction tries again
		case <-ticker.C:
			_ = db.commit(nil)
		case <-db.closing:
			db.commitAfterDeferred(db.gather(nil))
			_ = db.applyBacklog(0)
			return
		}
	}
}

// commitAfterDeferred makes everything that is deferred durable, and then the
// changes of batch: the last of it in one transaction with them.
func (db *DB) commitAfterDeferred(batch []*commit) {
	if err := db.applyBacklog(deferBatch); err != nil {
		for _, c := range batch {
			c.answer(err)
		}
		return
	}
	_ = db.commit(batch) // which answers those of batch
}

// applyBacklog applies what is deferred now but for the newest, at most leave.
func (db *DB) applyBacklog(leave uint64) error {
	all, done := db.backlog.reached()
	for all > done+leave {
		if err := db.commit(nil); err != nil {
			return err
		}
		_, done = db.backlog.reached()
	}
	return nil
}

// gather takes whatever is queued behind first.
func (db *DB) gather(first *commit) []*commit {
	var batch []*commit
	if first != nil {
		batch = append(batch, first)
	}
	for len(batch) < maxBatch {
		select {
		case c := <-db.queue:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// commit makes what is deferred, as much as there is in a transaction, and then
// the changes of batch durable in one, leaving out those of batch that fail. It
// returns why nothing could be.
func (db *DB) commit(batch []*commit) error {
	waiting := db.backlog.some()
	for len(batch) > 0 || len(waiting) > 0 {
		failed := -1
		err := db.bolt.Update(func(tx *bbolt.Tx) error {
			if err := applyDeferred(tx, waiting); err != nil {
				return err
			}
			for i, c := range batch {
				if err := c.run(tx); err != nil {
					failed = i
					return err
				}
			}
			return nil
		})
		db.records.committed(len(batch))
		if errors.Is(err, errInstead) {
			continue
		}
		if failed < 0 {
			if err == nil {
				db.settled(waiting)
			} else {
				db.backlog.stuck(err)
			}
			for _, c := range batch {
				c.answer(err)
			}
			return err
		}
		batch[failed].answer(err)
		batch = append(batch[:failed:failed], batch[failed+1:]...)
	}
	return nil
}

// settled takes applied changes off the backlog and calls what was to be
// called then.
func (db *DB) settled(changes []*deferred) {
	db.backlog.applied(len(changes))
	for _, d := range changes {
		for _, then := range d.committed {
			then()
		}
	}
}

// run calls the change; a panic ends it like an error and is passed on to the
// goroutine that asked for it.
func (c *commit) run(tx *bbolt.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.panic = p
			err = fmt.Errorf("change panicked: %v", p)
		}
	}()
	c.committed = nil // an earlier run was undone
	return c.change(&Tx{bolt: tx, committed: &c.committed})
}
