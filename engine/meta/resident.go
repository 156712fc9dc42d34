package meta

import (
	"time"

	"go.etcd.io/bbolt"
)

// residentDelay is how long what was read of the file counts as this process's
// memory.
const residentDelay = 500 * time.Millisecond

// release takes what was read of the file out of this process's memory. It stays
// in the page cache, and comes back by itself when it is read again. Else the
// process would be as large as the file sooner or later, and nobody could tell
// what it needs.
func (db *DB) release() {
	_ = db.bolt.View(func(tx *bbolt.Tx) error { // which keeps the file mapped where it is
		unmap(db.bolt.Info().Data, tx.Size())
		return nil
	})
}
