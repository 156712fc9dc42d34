package repository

import (
	"encoding/binary"
	"sync"
)

// maxKnown bounds the chunks that are remembered, and with them the memory.
// Of what lies beyond (128 GiB), a chunk is still compared with the one at the
// same place of the backup before.
const maxKnown = 1 << 20

// known finds chunks by their hash. It remembers a part of each hash; who
// asks compares the rest.
type known struct {
	mu    sync.RWMutex
	chunk map[uint64]Ref
}

func hashKey(h Hash) uint64 { return binary.LittleEndian.Uint64(h[:]) }

func (k *known) find(h Hash) (Ref, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	ref, ok := k.chunk[hashKey(h)]
	return ref, ok
}

func (k *known) add(h Hash, ref Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.chunk) < maxKnown {
		k.chunk[hashKey(h)] = ref
	}
}

// loadKnown learns what the published indexes hold.
func (r *Repository) loadKnown() (*known, error) {
	k := &known{chunk: map[uint64]Ref{}}
	sessions, err := r.indexed()
	if err != nil {
		return nil, err
	}
	for _, session := range sessions {
		if err := r.openedIndex(session); err != nil {
			return nil, err
		}
		err := r.indexOf(session).each(func(ordinal uint32, e entry) error {
			k.add(e.hash, Ref{session, ordinal})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// indexed returns the sessions that have an index, sorted.
func (r *Repository) indexed() ([]uint32, error) {
	names, err := r.list(indexDir)
	if err != nil {
		return nil, err
	}
	var sessions []uint32
	for _, name := range names {
		if session, ok := sessionOf(name); ok && r.isIndex(name, session) {
			sessions = append(sessions, session)
		}
	}
	return sessions, nil
}

func (r *Repository) isIndex(name string, session uint32) bool {
	return indexDir+"/"+name == indexName(session)
}

// indexOf returns an index that is open, to those who hold r.work.
func (r *Repository) indexOf(session uint32) *index {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.indexes[session]
}
