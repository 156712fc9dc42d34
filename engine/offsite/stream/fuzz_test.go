package stream

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"filippo.io/age"
)

func identities(t testing.TB) (age.Recipient, age.Identity) {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i.Recipient(), i
}

// bodies has a frame of each type.
func bodies() []Body {
	ref := Reference{Epoch{3, "abc"}, 7, 1 << 30, Hash{1, 2}}
	return []Body{
		WAL{"db", 1, 2, 0x16000000, []byte("wal")},
		WALFile{"db", 1, "00000002.history", []byte("1 0/3000000")},
		Journal{4, 4096, []byte("journal")},
		JournalDrop{4},
		Meta{9, []MetaChange{{[]string{"a", "b"}, []byte("k"), []byte("v"), false}, {[]string{"a"}, []byte("k"), nil, true}}},
		File{"db", "pack", "00000001-000001", ref},
		FileDrop{"db", "pack", "00000001-000001"},
		OwnerDrop{"db"},
	}
}

func logOf(t testing.TB, c *compressor, all []Body) []byte {
	t.Helper()
	l := &logBuilder{header: logHeader{seq: 5, previous: Hash{9}}}
	for i, b := range all {
		if err := l.add(Frame{Time: time.Unix(1000+int64(i), 1).UTC(), Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	object, _ := l.finish(c, nil)
	return object
}

func newTestCompressor(t testing.TB) *compressor {
	t.Helper()
	c, err := newCompressor()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFramesRoundTrip(t *testing.T) {
	c := newTestCompressor(t)
	h, frames, err := decodeLog(c, logOf(t, c, bodies()))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range bodies() {
		if !reflect.DeepEqual(frames[i].Body, want) || !frames[i].Time.Equal(time.Unix(1000+int64(i), 1)) {
			t.Errorf("frame %d: %+v, want %+v", i, frames[i], want)
		}
	}
	if h.seq != 5 || h.frames != len(bodies()) || h.previous != (Hash{9}) || !h.first.Equal(frames[0].Time) || !h.last.Equal(frames[7].Time) {
		t.Errorf("the header is %+v", h)
	}
}

func known(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) }

// FuzzLog decodes anything as a log object, and as the frames of one. What decodes,
// encodes and decodes to the same.
func FuzzLog(f *testing.F) {
	c := newTestCompressor(f)
	f.Add(logOf(f, c, bodies()), []byte{}, byte(0))
	for _, b := range bodies() {
		f.Add([]byte{}, b.append(nil), b.kind())
	}
	f.Fuzz(func(t *testing.T, object, body []byte, kind byte) {
		if _, _, err := decodeLog(c, object); err != nil && !known(err) {
			t.Error(err)
		}
		if _, err := decodeFrames(object, len(object)/13); err != nil && !known(err) {
			t.Error(err)
		}
		decoded, err := decodeBody(kind, body)
		if err != nil {
			if !known(err) {
				t.Error(err)
			}
			return
		}
		again, err := decodeBody(kind, decoded.append(nil))
		if err != nil || !reflect.DeepEqual(decoded, again) {
			t.Errorf("%+v becomes %+v, %v", decoded, again, err)
		}
	})
}

// FuzzCheckpoint decodes anything as a checkpoint and as a block of a catalog.
func FuzzCheckpoint(f *testing.F) {
	c := newTestCompressor(f)
	p := Point{Epoch{Number: 1}, 9, time.Unix(5, 5).UTC()}
	ref := Reference{Epoch{Number: 1}, 1, 100, Hash{1}}
	f.Add((&Checkpoint{Point: p, Replay: 8, Hash: Hash{1}, Entries: 2, Bytes: 3, blocks: []Reference{ref}}).encode())
	for _, block := range blocks([]Entry{{"a", "b", "c", ref, nil}, {"a", "b", "d", Reference{}, []byte("data")}}) {
		f.Add(c.compressBlock(block))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := decodeCheckpoint(b, p); err == nil {
			if again, err := decodeCheckpoint(got.encode(), p); err != nil || !reflect.DeepEqual(got, again) {
				t.Errorf("%+v becomes %+v, %v", got, again, err)
			}
		} else if !known(err) {
			t.Error(err)
		}
		entries, block, err := decodeBlock(c, b)
		if err != nil {
			if !known(err) {
				t.Error(err)
			}
			return
		}
		if all := blocks(entries); len(all) == 1 && len(block) < maxBlock && !bytes.Equal(all[0], block) && canonical(block) {
			t.Error("a block becomes another one")
		}
	})
}

// canonical reports whether encoding what a block has gives the block again: numbers
// can be written longer than need be.
func canonical(block []byte) bool {
	for _, b := range block[blockHead:] {
		if b >= 0x80 {
			return false
		}
	}
	return true
}

// FuzzClaim decodes anything as a claim and as a marker.
func FuzzClaim(f *testing.F) {
	b, err := Claim{Epoch{2, "x"}, Epoch{Number: 1}, Cut{4, Hash{1}, Point{Epoch{Number: 1}, 4, time.Unix(9, 0).UTC()}, time.Unix(8, 0).UTC()}, "m", "t", time.Unix(10, 0).UTC(), time.Unix(7, 0).UTC()}.encode()
	if err != nil {
		f.Fatal(err)
	}
	m, err := Marker{"id", time.Unix(1, 0).UTC()}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(m)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decodeMarker(string(b)); err != nil && !known(err) {
			t.Error(err)
		}
		c, err := decodeClaim(b)
		if err != nil {
			if !known(err) {
				t.Error(err)
			}
			return
		}
		again, err := c.encode()
		if err != nil {
			return // a time that JSON cannot have
		}
		if d, err := decodeClaim(again); err != nil || d != c {
			t.Errorf("%+v becomes %+v, %v", c, d, err)
		}
	})
}

// FuzzKeys parses anything as the names of the store.
func FuzzKeys(f *testing.F) {
	e := Epoch{Number: 0x1f, Nonce: "ab"}
	for _, key := range []string{e.key(), e.logKey(3), e.partKey(4, 5), Point{e, 6, time.Unix(7, 8)}.key(), "bid/x", "0000000000000000-0000000000000000"} {
		f.Add(key)
	}
	l := &live{}
	f.Fuzz(func(t *testing.T, key string) {
		l.needs(key)
		if p, ok := parsePoint(e, key); ok && p.key() != key {
			t.Errorf("%q is the point %q", key, p.key())
		}
		if e, ok := parseEpoch(key); ok && e.String() != key {
			t.Errorf("%q is the epoch %q", key, e)
		}
	})
}
