package meta

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// maxBatch limits how many changes share one sync, and so how much work one failing
// change makes the others repeat.
const maxBatch = 256

// commit is a change that waits to be made durable. The commit loop owns it until
// answered is closed; then its caller owns it again.
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

// View runs read on a consistent snapshot of the committed state without waiting.
// read must not do network or disk I/O: an open snapshot keeps old pages from being
// reused, and Update may have to wait for its end. For the same reason read must not
// call Update.
func (db *DB) View(read func(*Tx) error) error {
	err := db.view(func(tx *bbolt.Tx) error { return read(&Tx{bolt: boltTx{tx: tx}, damage: &db.damage}) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Value runs read in a transaction of in, such as [DB.View] or [DB.Update], and
// returns its result.
func Value[T any](in func(func(*Tx) error) error, read func(*Tx) (T, error)) (value T, err error) {
	err = in(func(tx *Tx) (err error) {
		value, err = read(tx)
		return err
	})
	return value, err
}

// ViewFlushed is View after a flush: read also sees every change queued before.
// It waits for a commit while changes are queued, so it is meant for lists and
// totals of objects and other data that queued changes affect. When the disk has
// no free space for the flush, the changes are applied in memory for read.
func (db *DB) ViewFlushed(read func(*Tx) error) error {
	if db.Flush() != nil {
		return db.viewQueued(read)
	}
	return db.View(read)
}

// viewQueued applies the queued changes in memory for the duration of read.
func (db *DB) viewQueued(read func(*Tx) error) error {
	changes := db.writeBehind.copies()
	for {
		if err := db.tryQueued(changes, read); !errors.Is(err, errChangeFailed) {
			return err
		}
	}
}

func (db *DB) tryQueued(changes []*queuedChange, read func(*Tx) error) error {
	bolt, err := db.bolt.Begin(true)
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("view queued changes: %w", err)
	}
	defer bolt.Rollback()
	tx := boltTx{tx: bolt}
	applied := appliedIn(&Tx{bolt: tx})
	for len(changes) > 0 && changes[0].position <= applied {
		changes = changes[1:]
	}
	if err := applyQueued(tx, changes); err != nil {
		return err
	}
	return read(&Tx{bolt: tx, damage: &db.damage})
}

// Update makes change durable. Changes that queue while another is synced are
// committed together, without a timer. If one of them returns an error, only that
// one is left out, and the others run again. So change may run more than once and
// must only set what it captured, never add to it. Effects that must happen exactly
// once, after success, go into Tx.OnCommit. A change must not call Update. Its panic
// reaches only its caller. After an ErrReadOnly of a change that ran, it is undefined
// whether a restart finds the change.
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
		select { // the loop has ended; it answers every change it tried first
		case <-c.answered:
		default:
			return ErrClosed
		}
	}
	return c.end()
}

// end finishes the change in its caller's goroutine.
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

// commitLoop commits until the store is closed. A panic of it ends the process; no change may be told before that the
// store is closed, so done is not closed by it.
func (db *DB) commitLoop() {
	ticker := time.NewTicker(queueDelay)
	defer ticker.Stop()
	for {
		select {
		case c := <-db.queue:
			db.commitAfterQueued(db.gather(c))
		case <-db.writeBehind.full:
			_ = db.commit(nil) // the next transaction tries again
		case <-ticker.C:
			_ = db.commit(nil)
		case <-db.closing:
			db.commitAfterQueued(db.gather(nil))
			_ = db.commitQueued(0)
			close(db.done)
			return
		}
	}
}

// commitAfterQueued commits every queued change, then the changes of batch; the
// last queued ones share a transaction with the batch.
func (db *DB) commitAfterQueued(batch []*commit) {
	if err := db.commitQueued(queueBatch); err != nil {
		for _, c := range batch {
			c.answer(err)
		}
		return
	}
	_ = db.commit(batch) // commit answers the changes of batch
}

// commitQueued commits the queued changes except the newest, up to leave of them.
func (db *DB) commitQueued(leave uint64) error {
	all, done := db.writeBehind.reached()
	for all > done+leave {
		if err := db.commit(nil); err != nil {
			return err
		}
		_, done = db.writeBehind.reached()
	}
	return nil
}

// gather collects first and the changes queued after it.
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

// commit commits up to queueBatch queued changes and the changes of batch in one
// transaction, leaving out those of batch that fail. It returns the error of a
// transaction that failed as a whole.
func (db *DB) commit(batch []*commit) error {
	waiting := db.writeBehind.some()
	for len(batch) > 0 || len(waiting) > 0 {
		failed := -1
		err := db.transact(func(tx boltTx) error {
			if err := applyQueued(tx, waiting); err != nil {
				return err
			}
			for i, c := range batch {
				if err := c.run(db, tx); err != nil {
					failed = i
					return err
				}
			}
			return nil
		})
		db.records.committed(len(batch))
		if errors.Is(err, errChangeFailed) {
			continue
		}
		if failed < 0 {
			if err == nil {
				db.finished(waiting)
			} else {
				db.writeBehind.setError(err)
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

// transact runs change in a transaction, and gives what it changed to the Capture.
func (db *DB) transact(change func(boltTx) error) error {
	db.capturing.Lock()
	defer db.capturing.Unlock()
	if db.failed != nil {
		return db.failed
	}
	r, number := db.capture.begin(), uint64(0)
	err := db.update(func(tx *bbolt.Tx) error {
		number = uint64(tx.ID())
		return change(boltTx{tx, r})
	})
	if err != nil {
		db.endUnmapped(err)
	}
	committed := err == nil
	if err != nil && number > 0 && db.committed(number) {
		committed, err = true, db.makeDurable(err)
	}
	if committed && r != nil {
		db.capture.add(number, r)
	}
	return err
}

// committed reports whether a transaction is part of the state, though its commit
// failed: the last sync may fail after everything was written.
func (db *DB) committed(number uint64) bool {
	last, err := db.Commits()
	return err == nil && last >= number
}

// endUnmapped ends the process if the file is not mapped any more, as when the kernel
// refuses to map a file that has grown: nothing can be read or changed then, and only
// another start can map it.
func (db *DB) endUnmapped(cause error) {
	if _, err := db.Commits(); errors.Is(err, bolterrors.ErrInvalidMapping) {
		panic(fmt.Sprintf("the metadata cannot be read any more, start again: %v", cause))
	}
}

// finished removes applied changes from the queue and runs their OnCommit
// functions.
func (db *DB) finished(changes []*queuedChange) {
	db.writeBehind.applied(len(changes))
	for _, d := range changes {
		for _, then := range d.committed {
			then()
		}
	}
}

// run calls the change. A panic ends it like an error and is rethrown in the
// goroutine of its caller.
func (c *commit) run(db *DB, tx boltTx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.panic = p
			err = fmt.Errorf("change panicked: %v", p)
		}
	}()
	c.committed = nil // an earlier run was rolled back
	return c.change(&Tx{bolt: tx, committed: &c.committed, events: db.events.Load(), wakes: &db.wakes, damage: &db.damage})
}
