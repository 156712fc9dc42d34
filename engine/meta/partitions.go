package meta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"holdfast/engine/model"
)

// timePartitions indexes keys by version. Versions sort by age. The index is divided into
// time partitions of at most size members each; within a partition, members are
// sorted by key. Finding the newest members with a prefix takes one seek into
// each partition from the newest back, however many members have the prefix and
// however old they are.
//
// A partition's name is the lowest version it may contain; every version in the
// partitions before it is lower.
type timePartitions struct {
	starts  *boltBucket // the name of each partition → its number of members
	members *boltBucket // a partition's name and a key → the key's version
	size    int

	// While keeping is set, the last partition, to which most members are added,
	// is cached, and its count is written by flush.
	keeping   bool
	last      []byte // nil when it is not known
	lastCount int
}

// partitionSize is the maximum number of members of a partition. Listing costs a seek
// into each partition and a read of those with matches.
const partitionSize = 1024

// member is a key and its version. The bytes belong to bbolt and are valid until
// the next change.
type member struct{ version, key []byte }

// newer orders members from the newest to the oldest.
func newer(a, b member) int { return bytes.Compare(b.version, a.version) }

// firstPartition sorts before every version.
var firstPartition = make([]byte, model.VersionLength)

func memberKey(partition, key []byte) []byte { return append(bytes.Clone(partition), key...) }

// add adds a key. The version must be new to the index.
func (x *timePartitions) add(version, key []byte) error {
	partition, count := x.of(version)
	if partition == nil {
		partition = firstPartition
	}
	if count >= x.size {
		var err error
		if partition, count, err = x.cut(partition, version); err != nil {
			return err
		}
	}
	if err := x.members.Put(memberKey(partition, key), version); err != nil {
		return fmt.Errorf("index by age: %w", err)
	}
	if err := x.count(partition, count+1); err != nil || count > 0 {
		return err
	}
	return x.join(partition) // a new one may precede a small one
}

// remove removes a key and joins small partitions: two neighbours together are
// at least a quarter full, so the number of partitions stays proportional to the
// number of members.
func (x *timePartitions) remove(version, key []byte) error {
	partition, count := x.of(version)
	name := memberKey(partition, key)
	if partition == nil || !bytes.Equal(x.members.Get(name), version) {
		return nil
	}
	if err := x.members.Delete(name); err != nil {
		return fmt.Errorf("index by age: %w", err)
	}
	if err := x.count(partition, count-1); err != nil || count-1 >= x.size/4 {
		return err
	}
	return x.join(partition)
}

// of returns the partition that a version belongs to and its number of members,
// nil when the index is empty.
func (x *timePartitions) of(version []byte) (partition []byte, count int) {
	if x.last != nil && bytes.Compare(x.last, version) <= 0 {
		return x.last, x.lastCount
	}
	cursor := x.starts.Cursor()
	name, data := atOrBefore(cursor, version)
	partition, count = bytes.Clone(name), partitionCount(data)
	if x.keeping && x.last == nil && partition != nil {
		if next, _ := cursor.Next(); next == nil {
			x.last, x.lastCount = partition, count
		}
	}
	return partition, count
}

// flush writes the cached count of the last partition and drops it from the
// cache.
func (x *timePartitions) flush() error {
	last := x.last
	if x.last = nil; last == nil {
		return nil
	}
	return x.count(last, x.lastCount)
}

// count records the number of members of a partition and removes an empty one.
func (x *timePartitions) count(partition []byte, n int) (err error) {
	if x.last != nil && bytes.Equal(partition, x.last) {
		x.lastCount = n
		return nil
	}
	if n == 0 {
		err = x.starts.Delete(partition)
	} else {
		err = x.starts.Put(partition, binary.BigEndian.AppendUint32(nil, uint32(n)))
	}
	if err != nil {
		return fmt.Errorf("index by age: %w", err)
	}
	return nil
}

func partitionCount(data []byte) int {
	if len(data) != 4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(data))
}

// cut splits a full partition to add a version, and returns the partition the
// version then belongs to. A version newer than the whole partition, which is the
// usual case, starts a partition of its own, so that no member moves.
func (x *timePartitions) cut(partition, version []byte) (into []byte, count int, err error) {
	if err := x.flush(); err != nil {
		return nil, 0, err
	}
	newest := slices.MinFunc(x.find(nil, partition, nil, nil), newer)
	if bytes.Compare(newest.version, version) < 0 {
		return version, 0, nil
	}
	all := x.all(partition)
	older, later := all[:len(all)/2], all[len(all)/2:]
	next := later[0].version
	if err := x.move(later, partition, next); err != nil {
		return nil, 0, err
	}
	if err := x.count(partition, len(older)); err != nil {
		return nil, 0, err
	}
	if err := x.count(next, len(later)); err != nil {
		return nil, 0, err
	}
	if bytes.Compare(version, next) > 0 {
		return next, len(later), nil
	}
	return partition, len(older), nil
}

// join joins a partition with the one before it, or else the one after it, where
// the two together are at most half full.
func (x *timePartitions) join(partition []byte) error {
	if err := x.flush(); err != nil {
		return err
	}
	names, counts := [3][]byte{}, [3]int{} // the partition before, this one, the one after
	cursor := x.starts.Cursor()
	name, data := cursor.Seek(partition)
	if !bytes.Equal(name, partition) { // it was removed
		return nil
	}
	names[1], counts[1] = partition, partitionCount(data)
	name, data = cursor.Next()
	names[2], counts[2] = bytes.Clone(name), partitionCount(data)
	cursor.Seek(partition)
	name, data = cursor.Prev()
	names[0], counts[0] = bytes.Clone(name), partitionCount(data)
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

func (x *timePartitions) move(members []member, from, to []byte) error {
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

// all returns copies of a partition's members, oldest first.
func (x *timePartitions) all(partition []byte) []member {
	all := x.find(nil, partition, nil, nil)
	for i, m := range all {
		all[i] = member{bytes.Clone(m.version), bytes.Clone(m.key)}
	}
	slices.SortFunc(all, func(a, b member) int { return newer(b, a) })
	return all
}

// find appends the members of a partition whose keys begin with prefix and whose
// versions are below before (nil = any), sorted by key.
func (x *timePartitions) find(found []member, partition, prefix, before []byte) []member {
	cursor := x.members.Cursor()
	from := memberKey(partition, prefix)
	for name, version := cursor.Seek(from); bytes.HasPrefix(name, from); name, version = cursor.Next() {
		if before == nil || bytes.Compare(version, before) < 0 {
			found = append(found, member{version, name[len(partition):]})
		}
	}
	return found
}

// newest returns up to limit members whose keys begin with prefix and whose
// versions are below before (nil = any), newest first.
func (x *timePartitions) newest(prefix, before []byte, limit int) []member {
	cursor := x.starts.Cursor()
	partition, _ := cursor.Last()
	if before != nil {
		partition, _ = atOrBefore(cursor, before)
	}
	var found []member
	for ; partition != nil && len(found) < limit; partition, _ = cursor.Prev() {
		known := len(found)
		found = x.find(found, partition, prefix, before)
		slices.SortFunc(found[known:], newer)
	}
	return found[:min(limit, len(found))]
}

// oldest returns up to limit members whose keys begin with prefix and whose
// versions are below before, oldest first.
func (x *timePartitions) oldest(prefix, before []byte, limit int) []member {
	cursor := x.starts.Cursor()
	var found []member
	for partition, _ := cursor.First(); partition != nil && bytes.Compare(partition, before) < 0 && len(found) < limit; partition, _ = cursor.Next() {
		known := len(found)
		found = x.find(found, partition, prefix, before)
		slices.SortFunc(found[known:], func(a, b member) int { return newer(b, a) })
	}
	return found[:min(limit, len(found))]
}

// atOrBefore moves the cursor to bound, or to the last key before it.
func atOrBefore(cursor boltCursor, bound []byte) (key, value []byte) {
	key, value = cursor.Seek(bound)
	if bytes.Equal(key, bound) {
		return key, value
	}
	if key == nil {
		return cursor.Last()
	}
	return cursor.Prev()
}
