package xlog

import (
	"reflect"
	"testing"
)

// FuzzParts: a record of any content is decoded or rejected.
func FuzzParts(f *testing.F) {
	f.Add([]byte{idMainShort, 8, 5, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0x10, 0, 0, 4, 0, 0, 0, 5, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := Record{data: append(make([]byte, recordHeader), body...), length: recordHeader + len(body)}
		var parts Parts
		if err := parts.Read(&r); err == nil && len(parts.Main) > len(body) {
			t.Errorf("main data of %d bytes in %d", len(parts.Main), len(body))
		}
		var changes Changes
		for r.Resource = range uint8(10) {
			for _, info := range []uint8{0, 0x10, 0x20, 0x60, 0x80} {
				r.Info = info
				changes.Add(&r)
			}
		}
	})
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("1\t0/3000000\tno recovery target specified\n\n2\t0/4000000\tbefore 2000-01-01\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := ParseHistory(9, text)
		if err == nil && len(h) > 0 && h.at(h[0].At, 9) == h[0].Timeline {
			t.Errorf("the fork itself belongs to the next timeline: %v", h)
		}
	})
}

// FuzzChanges decodes any summary of changed pages; a valid one is encoded to itself.
func FuzzChanges(f *testing.F) {
	var c Changes
	c.addPage(Relation{1663, 5, 16384}, 7)
	c.addPage(Relation{1663, 5, 16384}, 70000)
	c.addRelation(Relation{1664, 0, 1260})
	f.Add(c.Encode())
	f.Add([]byte{0, 0, 0})
	f.Add([]byte{1, 1, 5, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := DecodeChanges(in)
		if err != nil {
			return
		}
		again, err := DecodeChanges(c.Encode())
		if err != nil || again.everything != c.everything || !reflect.DeepEqual(again.databases, c.databases) || !reflect.DeepEqual(again.relations, c.relations) {
			t.Errorf("%v comes back as %v, %v", c, again, err)
		}
	})
}
