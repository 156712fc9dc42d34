package repository

import (
	"encoding/binary"
	"errors"
	"sync"
)

// maxKnown bounds the number of known chunks, and thereby the memory. Beyond it (128 GiB), a chunk is still compared
// with the chunk at the same position in the previous backup.
const maxKnown = 1 << 20

// known finds chunks by their hash. It stores only a part of each hash; the caller compares the rest.
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

// loadKnown reads the hashes from the published indexes. Chunks whose entries cannot be read are not known and are
// stored again.
func (r *Repository) loadKnown() (*known, error) {
	k := &known{chunk: map[uint64]Ref{}}
	all, unreadable := r.opened()
	err := errors.Join(unreadable...)
	for _, x := range all {
		if r.isMerged(x) {
			continue
		}
		err = errors.Join(err, x.each(func(ref Ref, e entry) error {
			k.add(e.hash, ref)
			return nil
		}))
	}
	if errors.Is(r.noteIndex(err), ErrDamaged) {
		return k, nil
	}
	return k, err
}

// indexed returns the sorted numbers of all indexes.
func (r *Repository) indexed() ([]uint32, error) {
	names, err := r.list(indexDir)
	if err != nil {
		return nil, err
	}
	var numbers []uint32
	for _, name := range names {
		if number, ok := numberOf(name); ok && indexDir+"/"+name == indexName(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}
