package sealed

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Ring is the master keys of a store, at least one. It does not change.
type Ring struct {
	keys   map[uint32]Key
	newest uint32
}

// NewRing returns the ring of these keys. It refuses none, and two of one number.
func NewRing(keys ...Key) (*Ring, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: the ring is empty", ErrNoKey)
	}
	r := &Ring{keys: map[uint32]Key{}}
	for _, k := range keys {
		if _, twice := r.keys[k.number]; twice {
			return nil, fmt.Errorf("two master keys have the number %d", k.number)
		}
		r.keys[k.number] = k
		r.newest = max(r.newest, k.number)
	}
	return r, nil
}

// Newest returns the key to seal with.
func (r *Ring) Newest() Key { return r.keys[r.newest] }

// Numbers returns the numbers of the keys in ascending order.
func (r *Ring) Numbers() []uint32 { return slices.Sorted(maps.Keys(r.keys)) }

// Rotate returns a new random key with the next number and the ring that has it too.
// The caller stores the wrapped key before it seals anything with it.
func (r *Ring) Rotate() (Key, *Ring, error) {
	if r.newest == math.MaxUint32 {
		return Key{}, nil, fmt.Errorf("rotate the master key: no number follows %d", r.newest)
	}
	k := NewKey(r.newest + 1)
	next, err := NewRing(append(slices.Collect(maps.Values(r.keys)), k)...)
	return k, next, err
}

// key returns the key of a number.
func (r *Ring) key(number uint32) (Key, error) {
	k, ok := r.keys[number]
	if !ok {
		return Key{}, fmt.Errorf("%w: the object was sealed with key %d, the ring has %v", ErrNoKey, number, r.Numbers())
	}
	return k, nil
}
