package meta

import (
	"errors"
	"fmt"

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

// View runs read on a consistent snapshot. It must not be held across
// network or disk I/O: an open snapshot keeps old pages from being reused,
// and Update may have to wait for its end. So read must not call Update.
func (db *DB) View(read func(*Tx) error) error {
	err := db.bolt.View(func(tx *bbolt.Tx) error { return read(&Tx{bolt: tx}) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
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
	for {
		select {
		case c := <-db.queue:
			db.commit(db.gather(c))
		case <-db.closing:
			if batch := db.gather(nil); len(batch) > 0 {
				db.commit(batch)
			}
			return
		}
	}
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

// commit makes the changes of batch durable in one transaction, leaving out
// those that fail.
func (db *DB) commit(batch []*commit) {
	for len(batch) > 0 {
		failed := -1
		err := db.bolt.Update(func(tx *bbolt.Tx) error {
			for i, c := range batch {
				if err := c.run(tx); err != nil {
					failed = i
					return err
				}
			}
			return nil
		})
		if failed < 0 {
			for _, c := range batch {
				c.answer(err)
			}
			return
		}
		batch[failed].answer(err)
		batch = append(batch[:failed:failed], batch[failed+1:]...)
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
