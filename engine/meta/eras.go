package meta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

// eras is an index of keys by their versions, which are by age. It is cut into
// eras: about size members that follow each other in time, which lie in the
// order of their keys. So the newest members with a prefix are found by one
// look into each era from the newest back, whatever the prefix: neither how many
// have it nor how old they are makes it slow.
//
// An era is named by a version that none of its members is below, and all of
// those of the eras before it are.
type eras struct {
	starts  *bbolt.Bucket // the name of each era → how many members it has
	members *bbolt.Bucket // its name and a key → the key's version
	size    int

	// While keeping, the last era is remembered, which most members go to, and
	// how many it has is written when it is settled.
	keeping   bool
	last      []byte // nil when it is not known
	lastCount int
}

// eraSize is how many members an era has at the most. Listing costs a look into
// each era, and the reading of those in which something is found.
const eraSize = 1024

// member is a key and its version. The bytes are the database's, and valid
// until it is changed.
type member struct{ version, key []byte }

// newer orders members from the newest to the oldest.
func newer(a, b member) int { return bytes.Compare(b.version, a.version) }

// firstEra is below every version.
var firstEra = make([]byte, model.VersionLength)

func memberKey(era, key []byte) []byte { return append(bytes.Clone(era), key...) }

// add takes a key in. The version must be new to the index.
func (x *eras) add(version, key []byte) error {
	era, count := x.of(version)
	if era == nil {
		era = firstEra
	}
	if count >= x.size {
		var err error
		if era, count, err = x.cut(era, version); err != nil {
			return err
		}
	}
	if err := x.members.Put(memberKey(era, key), version); err != nil {
		return fmt.Errorf("index by age: %w", err)
	}
	if err := x.count(era, count+1); err != nil || count > 0 {
		return err
	}
	return x.join(era) // a new one may lie before a small one
}

// remove takes a key out. Eras that have become small are joined: two that
// follow each other have a quarter of a full one at the least, so that there
// are never many more than their members need.
func (x *eras) remove(version, key []byte) error {
	era, count := x.of(version)
	name := memberKey(era, key)
	if era == nil || !bytes.Equal(x.members.Get(name), version) {
		return nil
	}
	if err := x.members.Delete(name); err != nil {
		return fmt.Errorf("index by age: %w", err)
	}
	if err := x.count(era, count-1); err != nil || count-1 >= x.size/4 {
		return err
	}
	return x.join(era)
}

// of returns the era that a version belongs to, nil when there is none at all,
// and how many members it has.
func (x *eras) of(version []byte) (era []byte, count int) {
	if x.last != nil && bytes.Compare(x.last, version) <= 0 {
		return x.last, x.lastCount
	}
	cursor := x.starts.Cursor()
	name, data := atOrBefore(cursor, version)
	era, count = bytes.Clone(name), eraCount(data)
	if x.keeping && x.last == nil && era != nil {
		if next, _ := cursor.Next(); next == nil {
			x.last, x.lastCount = era, count
		}
	}
	return era, count
}

// settle notes how many members the last era has, and forgets it.
func (x *eras) settle() error {
	last := x.last
	if x.last = nil; last == nil {
		return nil
	}
	return x.count(last, x.lastCount)
}

// count notes how many members an era has. One without any is no more.
func (x *eras) count(era []byte, n int) (err error) {
	if x.last != nil && bytes.Equal(era, x.last) {
		x.lastCount = n
		return nil
	}
	if n == 0 {
		err = x.starts.Delete(era)
	} else {
		err = x.starts.Put(era, binary.BigEndian.AppendUint32(nil, uint32(n)))
	}
	if err != nil {
		return fmt.Errorf("index by age: %w", err)
	}
	return nil
}

func eraCount(data []byte) int {
	if len(data) != 4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(data))
}

// cut makes room for a version in an era that is full, and returns the one it
// belongs to then. What is newer than the whole era, as most is, begins an era
// of its own, which moves nothing.
func (x *eras) cut(era, version []byte) (into []byte, count int, err error) {
	if err := x.settle(); err != nil {
		return nil, 0, err
	}
	newest := slices.MinFunc(x.find(nil, era, nil, nil), newer)
	if bytes.Compare(newest.version, version) < 0 {
		return version, 0, nil
	}
	all := x.all(era)
	older, later := all[:len(all)/2], all[len(all)/2:]
	next := later[0].version
	if err := x.move(later, era, next); err != nil {
		return nil, 0, err
	}
	if err := x.count(era, len(older)); err != nil {
		return nil, 0, err
	}
	if err := x.count(next, len(later)); err != nil {
		return nil, 0, err
	}
	if bytes.Compare(version, next) > 0 {
		return next, len(later), nil
	}
	return era, len(older), nil
}

// join joins an era with the one before it or else the one after it, where
// both fill no more than half of one.
func (x *eras) join(era []byte) error {
	if err := x.settle(); err != nil {
		return err
	}
	names, counts := [3][]byte{}, [3]int{} // before, at or behind, behind that
	cursor := x.starts.Cursor()
	name, data := cursor.Seek(era)
	if !bytes.Equal(name, era) { // none is left of it
		return nil
	}
	names[1], counts[1] = era, eraCount(data)
	name, data = cursor.Next()
	names[2], counts[2] = bytes.Clone(name), eraCount(data)
	cursor.Seek(era)
	name, data = cursor.Prev()
	names[0], counts[0] = bytes.Clone(name), eraCount(data)
	for i := range 2 {
		into, from, sum := names[i], names[i+1], counts[i]+counts[i+1]
		if into == nil || from == nil || sum > x.size/2 {
			continue
		}
		if err := x.move(x.all(from), from, into); err != nil {
			return err
		}
		return errors.Join(x.count(from, 0), x.count(into, sum))
	}
	return nil
}

func (x *eras) move(members []member, from, to []byte) error {
	for _, m := range members {
		if err := x.members.Delete(memberKey(from, m.key)); err != nil {
			return fmt.Errorf("index by age: %w", err)
		}
		if err := x.members.Put(memberKey(to, m.key), m.version); err != nil {
			return fmt.Errorf("index by age: %w", err)
		}
	}
	return nil
}

// all returns copies of an era's members, oldest first.
func (x *eras) all(era []byte) []member {
	all := x.find(nil, era, nil, nil)
	for i, m := range all {
		all[i] = member{bytes.Clone(m.version), bytes.Clone(m.key)}
	}
	slices.SortFunc(all, func(a, b member) int { return newer(b, a) })
	return all
}

// find appends the members of an era whose keys begin with prefix and whose
// versions are below before (nil = any), in the order of their keys.
func (x *eras) find(found []member, era, prefix, before []byte) []member {
	cursor := x.members.Cursor()
	from := memberKey(era, prefix)
	for name, version := cursor.Seek(from); bytes.HasPrefix(name, from); name, version = cursor.Next() {
		if before == nil || bytes.Compare(version, before) < 0 {
			found = append(found, member{version, name[len(era):]})
		}
	}
	return found
}

// newest returns up to limit members whose keys begin with prefix and whose
// versions are below before (nil = any), newest first.
func (x *eras) newest(prefix, before []byte, limit int) []member {
	cursor := x.starts.Cursor()
	era, _ := cursor.Last()
	if before != nil {
		era, _ = atOrBefore(cursor, before)
	}
	var found []member
	for ; era != nil && len(found) < limit; era, _ = cursor.Prev() {
		known := len(found)
		found = x.find(found, era, prefix, before)
		slices.SortFunc(found[known:], newer)
	}
	return found[:min(limit, len(found))]
}

// oldest returns up to limit members whose versions are below before, oldest
// first.
func (x *eras) oldest(before []byte, limit int) []member {
	cursor := x.starts.Cursor()
	var found []member
	for era, _ := cursor.First(); era != nil && bytes.Compare(era, before) < 0 && len(found) < limit; era, _ = cursor.Next() {
		known := len(found)
		found = x.find(found, era, nil, before)
		slices.SortFunc(found[known:], func(a, b member) int { return newer(b, a) })
	}
	return found[:min(limit, len(found))]
}

// atOrBefore moves the cursor to bound, or to the last key before it.
func atOrBefore(cursor *bbolt.Cursor, bound []byte) (key, value []byte) {
	key, value = cursor.Seek(bound)
	if bytes.Equal(key, bound) {
		return key, value
	}
	if key == nil {
		return cursor.Last()
	}
	return cursor.Prev()
}
