package repository

import (
	"encoding/binary"
	"errors"
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

// loadKnown learns what the published indexes hold. What cannot be read of them
// is not known, and will be stored again.
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

// indexed returns the numbers of the indexes there are, sorted.
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
