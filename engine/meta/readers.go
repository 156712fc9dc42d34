package meta

import (
	"sync"

	"go.etcd.io/bbolt"
)

// readers knows which snapshots are open, in groups of those that began between two calls of sealed.
type readers struct {
	mu      sync.Mutex
	current *readerGroup
}

// readerGroup is some readers. Its fields are under the mutex of readers.
type readerGroup struct {
	open   int
	sealed bool
	ended  chan struct{} // closed when the group is sealed and all of it have ended
}

func newReaders() *readers { return &readers{current: newReaderGroup()} }

func newReaderGroup() *readerGroup { return &readerGroup{ended: make(chan struct{})} }

func (r *readers) begin() *readerGroup {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.open++
	return r.current
}

func (r *readers) end(g *readerGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.open--
	g.close()
}

func (g *readerGroup) close() {
	if g.sealed && g.open == 0 {
		close(g.ended)
	}
}

// sealed returns a channel that is closed once the readers that have begun since the call before have ended.
func (r *readers) sealed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.current
	before.sealed = true
	before.close()
	r.current = newReaderGroup()
	return before.ended
}

// view runs read on a consistent snapshot of the committed state. Every reader of the open store is one of these.
func (db *DB) view(read func(*bbolt.Tx) error) error {
	g := db.readers.begin()
	defer db.readers.end(g)
	return db.bolt.View(read)
}
