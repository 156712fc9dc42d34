package xlog

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// Encode encodes c as varints, each page as the difference from the previous one.
func (c *Changes) Encode() []byte {
	out := binary.AppendUvarint(nil, 0)
	if c.everything {
		out[0] = 1
	}
	out = binary.AppendUvarint(out, uint64(len(c.databases)))
	for _, d := range slices.Sorted(maps.Keys(c.databases)) {
		out = binary.AppendUvarint(out, uint64(d))
	}
	out = binary.AppendUvarint(out, uint64(len(c.relations)))
	for r, set := range c.relations {
		for _, v := range []uint32{r.Tablespace, r.Database, r.Number} {
			out = binary.AppendUvarint(out, uint64(v))
		}
		out = set.encode(out)
	}
	return out
}

// encode writes the number of pages, 0 for a whole relation, and the pages.
func (s *pageSet) encode(out []byte) []byte {
	if s == nil {
		return binary.AppendUvarint(out, 0)
	}
	count, before := 0, uint32(0)
	for range s.all {
		count++
	}
	out = binary.AppendUvarint(out, uint64(count))
	for number := range s.all {
		out = binary.AppendUvarint(out, uint64(number-before))
		before = number
	}
	return out
}

// errChanges means that an encoding was not produced by Encode.
var errChanges = errors.New("changed pages are not encoded as they should be")

// DecodeChanges decodes the output of Changes.Encode.
func DecodeChanges(in []byte) (*Changes, error) {
	ok := true
	next := func() uint64 {
		v, n := binary.Uvarint(in)
		if n <= 0 {
			ok = false
			return 0
		}
		in = in[n:]
		return v
	}
	c := &Changes{everything: next() != 0}
	for range next() {
		if c.databases == nil {
			c.databases = map[uint32]struct{}{}
		}
		if c.databases[uint32(next())] = struct{}{}; !ok {
			break
		}
	}
	for range next() {
		r := Relation{uint32(next()), uint32(next()), uint32(next())}
		count, number := next(), uint64(0)
		if !ok {
			break
		}
		if count == 0 {
			c.addRelation(r)
		}
		for ; count > 0 && ok; count-- {
			number += next()
			c.addPage(r, uint32(number))
		}
	}
	if !ok || len(in) > 0 {
		return nil, errChanges
	}
	return c, nil
}
