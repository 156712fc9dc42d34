package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const name = "e/00000001/db/01J/pack/000001"

// sizes are where the format has its edges.
func sizes() []int64 {
	const s = SegmentSize
	return []int64{0, 1, 15, 16, 17, s - 17, s - 16, s - 1, s, s + 1, s + 16, 2*s - 1, 2 * s, 2*s + 1, 5*s + 777}
}

type plainBody []byte

func (b plainBody) Size() int64                  { return int64(len(b)) }
func (b plainBody) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }

func ringOf(t testing.TB, keys ...Key) *Ring {
	t.Helper()
	r, err := NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func random(n int64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func sealAll(t testing.TB, key Key, name string, plain []byte) []byte {
	t.Helper()
	body, err := Seal(key, name, plainBody(plain))
	if err != nil {
		t.Fatal(err)
	}
	return readBody(t, body)
}

func readBody(t testing.TB, body Body) []byte {
	t.Helper()
	r, err := body.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sealed, err := io.ReadAll(iotest.HalfReader(r))
	if err != nil {
		t.Fatal(err)
	}
	if body.Size() != int64(len(sealed)) {
		t.Fatalf("Size is %d, the object has %d bytes", body.Size(), len(sealed))
	}
	return sealed
}

func openAll(sealed []byte, keys *Ring, name string) ([]byte, error) {
	r, err := NewReader(iotest.HalfReader(bytes.NewReader(sealed)), int64(len(sealed)), keys, name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestRoundTrip(t *testing.T) {
	key := NewKey(7)
	for _, size := range sizes() {
		plain := random(size)
		sealed := sealAll(t, key, name, plain)
		if got, err := PlainSize(int64(len(sealed))); err != nil || got != size {
			t.Errorf("PlainSize of %d sealed bytes: %d, %v, want %d", len(sealed), got, err, size)
		}
		if got, err := openAll(sealed, ringOf(t, key), name); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes do not come back: %v", size, err)
		}
	}
}

func TestSealGivesTheSameBytesAgain(t *testing.T) {
	body, err := Seal(NewKey(1), name, plainBody(random(3*SegmentSize)))
	if err != nil {
		t.Fatal(err)
	}
	var got [2][]byte
	for i := range got {
		r, err := body.Open()
		if err != nil {
			t.Fatal(err)
		}
		got[i], _ = io.ReadAll(r)
		r.Close()
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("a second Open seals to other bytes")
	}
}

func TestEqualPlaintextsDoNotLookAlike(t *testing.T) {
	key := NewKey(1)
	a, b := sealAll(t, key, name, random(100)), sealAll(t, key, name, random(100))
	if bytes.Equal(a[HeaderSize:], b[HeaderSize:]) {
		t.Error("two objects of one plaintext are equal")
	}
}

func TestWriter(t *testing.T) {
	key := NewKey(1)
	for _, size := range sizes() {
		plain := random(size)
		var out bytes.Buffer
		w, err := NewWriter(&out, key, name)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(plain, 40_001) {
			if n, err := w.Write(part); err != nil || n != len(part) {
				t.Fatal(n, err)
			}
		}
		if got, err := openAll(out.Bytes(), ringOf(t, key), name); size > 0 && err == nil {
			t.Errorf("an object of %d bytes that was not closed opens with %d bytes", size, len(got))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("Write after Close has no error")
		}
		if int64(out.Len()) != Size(size) {
			t.Errorf("%d bytes make %d, want %d", size, out.Len(), Size(size))
		}
		if got, err := openAll(out.Bytes(), ringOf(t, key), name); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes do not come back: %v", size, err)
		}
	}
}

func TestWriterPassesErrorsOn(t *testing.T) {
	pr, pw := io.Pipe()
	cause := errors.New("disk full")
	pr.CloseWithError(cause)
	w, err := NewWriter(pw, NewKey(1), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(random(2 * SegmentSize))
	if !errors.Is(err, cause) || !errors.Is(w.Close(), cause) {
		t.Errorf("Write returns %v, Close %v, want %v", err, w.Close(), cause)
	}
}

// TestTampering changes sealed objects in every way an attacker or a broken disk
// could, and wants the error that says so, and no byte that was not sealed.
func TestTampering(t *testing.T) {
	key := NewKey(3)
	plain := random(3*SegmentSize + 1000)
	sealed := sealAll(t, key, name, plain)
	other := sealAll(t, key, name, random(3*SegmentSize+1000))
	segment := func(b []byte, i int) []byte {
		return b[HeaderSize+i*sealedSegment : min(HeaderSize+(i+1)*sealedSegment, len(b))]
	}
	exchanged := func(change func(b []byte)) []byte {
		b := bytes.Clone(sealed)
		change(b)
		return b
	}
	for what, c := range map[string]struct {
		sealed []byte
		want   error
	}{
		"empty":                  {nil, ErrCorrupt},
		"half a header":          {sealed[:HeaderSize/2], ErrCorrupt},
		"header only":            {sealed[:HeaderSize], ErrCorrupt},
		"not sealed at all":      {plain, ErrCorrupt},
		"one byte short":         {sealed[:len(sealed)-1], ErrCorrupt},
		"last segment cut off":   {sealed[:HeaderSize+3*sealedSegment], ErrCorrupt},
		"two segments cut off":   {sealed[:HeaderSize+2*sealedSegment], ErrCorrupt},
		"one byte more":          {append(bytes.Clone(sealed), 0), ErrCorrupt},
		"a segment more":         {append(bytes.Clone(sealed), segment(sealed, 3)...), ErrCorrupt},
		"an object appended":     {append(bytes.Clone(sealed), sealed...), ErrCorrupt},
		"segments swapped":       {exchanged(func(b []byte) { copy(segment(b, 0), segment(sealed, 1)); copy(segment(b, 1), segment(sealed, 0)) }), ErrCorrupt},
		"segment twice":          {exchanged(func(b []byte) { copy(segment(b, 1), segment(sealed, 0)) }), ErrCorrupt},
		"another one's segment":  {exchanged(func(b []byte) { copy(segment(b, 1), segment(other, 1)) }), ErrCorrupt},
		"another one's header":   {exchanged(func(b []byte) { copy(b, other[:HeaderSize]) }), ErrCorrupt},
		"segment removed":        {slices.Concat(sealed[:HeaderSize], sealed[HeaderSize+sealedSegment:]), ErrCorrupt},
		"bit of the salt":        {exchanged(func(b []byte) { b[20] ^= 1 }), ErrMismatch},
		"bit of the check":       {exchanged(func(b []byte) { b[HeaderSize-1] ^= 1 }), ErrMismatch},
		"another version":        {exchanged(func(b []byte) { b[8] = 2 }), ErrVersion},
		"another segment size":   {exchanged(func(b []byte) { b[9] = 12 }), ErrCorrupt},
		"reserved bytes":         {exchanged(func(b []byte) { b[10] = 1 }), ErrCorrupt},
		"number of no key":       {exchanged(func(b []byte) { b[15] = 9 }), ErrNoKey},
		"number of another key":  {exchanged(func(b []byte) { b[15] = 4 }), ErrMismatch},
		"bit of the first byte":  {exchanged(func(b []byte) { b[HeaderSize] ^= 1 }), ErrCorrupt},
		"bit of a middle tag":    {exchanged(func(b []byte) { b[HeaderSize+2*sealedSegment-1] ^= 0x80 }), ErrCorrupt},
		"bit of the last byte":   {exchanged(func(b []byte) { b[len(b)-1] ^= 1 }), ErrCorrupt},
		"bit of the last text":   {exchanged(func(b []byte) { b[len(b)-tagSize-1] ^= 1 }), ErrCorrupt},
		"all zero after a third": {exchanged(func(b []byte) { clear(b[len(b)/3:]) }), ErrCorrupt},
	} {
		got, err := openAll(c.sealed, ringOf(t, key, NewKey(4)), name)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if !bytes.HasPrefix(plain, got) {
			t.Errorf("%s: bytes were returned that were not sealed", what)
		}
	}
}

func TestOtherNameAndOtherKey(t *testing.T) {
	key := NewKey(3)
	sealed := sealAll(t, key, name, random(10))
	for what, c := range map[string]struct {
		keys *Ring
		name string
		want error
	}{
		"other name":           {ringOf(t, key), name + "1", ErrMismatch},
		"no name":              {ringOf(t, key), "", ErrMismatch},
		"other key, number 3":  {ringOf(t, NewKey(3)), name, ErrMismatch},
		"ring without number":  {ringOf(t, NewKey(4)), name, ErrNoKey},
		"right, others beside": {ringOf(t, NewKey(2), key, NewKey(4)), name, nil},
	} {
		if _, err := openAll(sealed, c.keys, c.name); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}

// TestSegmentsOfAnotherNameAreRefused: the header's check aside, the segments
// themselves are bound to the name.
func TestSegmentsOfAnotherNameAreRefused(t *testing.T) {
	key := NewKey(1)
	sealed := sealAll(t, key, name, random(10))
	header := bytes.Clone(sealed[:HeaderSize])
	s, check, err := key.derive(header, "another")
	if err != nil {
		t.Fatal(err)
	}
	copy(header[checkOffset:], check)
	if _, err := openAll(append(header, sealed[HeaderSize:]...), ringOf(t, key), "another"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("segments of another name: %v, want %v", err, ErrCorrupt)
	}
	s.aad = append(header[:checkOffset:checkOffset], name...)
	if _, err := s.open(bytes.Clone(sealed[HeaderSize:]), 0, true); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the key does not depend on the name: %v", err)
	}
}

func TestPlainBodyOfAnotherSize(t *testing.T) {
	for _, lie := range []int64{-1, 1, -SegmentSize, SegmentSize} {
		body, err := Seal(NewKey(1), name, liar{random(2 * SegmentSize), lie})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := body.Open()
		if _, err := io.ReadAll(r); err == nil || errors.Is(err, ErrCorrupt) {
			t.Errorf("a body with %+d bytes in its size: %v, want an error of the body", lie, err)
		}
	}
}

type liar struct {
	plainBody
	lie int64
}

func (l liar) Size() int64 { return l.plainBody.Size() + l.lie }

func TestReaderPassesErrorsOn(t *testing.T) {
	key := NewKey(1)
	sealed := sealAll(t, key, name, random(2*SegmentSize))
	cause := errors.New("connection reset")
	src := io.MultiReader(bytes.NewReader(sealed[:SegmentSize]), iotest.ErrReader(cause))
	r, err := NewReader(src, int64(len(sealed)), ringOf(t, key), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, cause) || errors.Is(err, ErrCorrupt) {
		t.Errorf("a reader whose source fails returns %v, want %v and not %v", err, cause, ErrCorrupt)
	}
}

func TestPlainSizeRefusesSizesOfNoObject(t *testing.T) {
	for size := range int64(HeaderSize + tagSize) {
		if _, err := PlainSize(size); !errors.Is(err, ErrCorrupt) {
			t.Errorf("PlainSize(%d): %v", size, err)
		}
	}
	for i := range int64(tagSize) {
		if _, err := PlainSize(HeaderSize + sealedSegment + 1 + i); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a segment and %d bytes: %v", i+1, err)
		}
	}
	for _, size := range []int64{-1, -sealedSegment, -1 << 63} {
		if _, err := PlainSize(size); !errors.Is(err, ErrCorrupt) {
			t.Errorf("PlainSize(%d): %v", size, err)
		}
	}
}

func TestRanges(t *testing.T) {
	key := NewKey(1)
	for _, size := range sizes() {
		plain := random(size)
		sealed := sealAll(t, key, name, plain)
		o, err := NewOpener(sealed[:HeaderSize], int64(len(sealed)), ringOf(t, key), name)
		if err != nil {
			t.Fatal(err)
		}
		edges := []int64{0, 1, size / 2, SegmentSize - 1, SegmentSize, SegmentSize + 1, 2 * SegmentSize, size - 1, size}
		for _, from := range edges {
			for _, to := range edges {
				if 0 <= from && from <= to && to <= size {
					checkRange(t, o, sealed, plain, from, to)
				}
			}
		}
	}
}

func checkRange(t *testing.T, o *Opener, sealed, plain []byte, from, to int64) {
	t.Helper()
	at, length := o.Range(from, to-from)
	if at < HeaderSize || at+length > int64(len(sealed)) || length > to-from+2*sealedSegment {
		t.Fatalf("[%d, %d) of %d needs %d bytes at %d of %d", from, to, len(plain), length, at, len(sealed))
	}
	got, err := io.ReadAll(o.Reader(bytes.NewReader(sealed[at:at+length]), from, to-from))
	if err != nil || !bytes.Equal(got, plain[from:to]) {
		t.Fatalf("[%d, %d) of %d: %d bytes, %v", from, to, len(plain), len(got), err)
	}
	changed := bytes.Clone(sealed[at : at+length])
	changed[len(changed)/2] ^= 1
	if _, err := io.ReadAll(o.Reader(bytes.NewReader(changed), from, to-from)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("[%d, %d) of %d with a changed bit: %v", from, to, len(plain), err)
	}
}

// TestBytesAfterTheEnd: a source that goes on after the object is refused, also where
// the size that was told is the right one.
func TestBytesAfterTheEnd(t *testing.T) {
	key := NewKey(1)
	sealed := sealAll(t, key, name, random(100))
	r, err := NewReader(bytes.NewReader(append(bytes.Clone(sealed), 0)), int64(len(sealed)), ringOf(t, key), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an object that is followed by a byte: %v, want %v", err, ErrCorrupt)
	}
}

// TestRangeOfATruncatedObject: an object that lost whole segments cannot be read to
// its new end.
func TestRangeOfATruncatedObject(t *testing.T) {
	key := NewKey(1)
	sealed := sealAll(t, key, name, random(3*SegmentSize))[:HeaderSize+2*sealedSegment]
	o, err := NewOpener(sealed[:HeaderSize], int64(len(sealed)), ringOf(t, key), name)
	if err != nil {
		t.Fatal(err)
	}
	at, length := o.Range(o.Size()-1, 1)
	if _, err := io.ReadAll(o.Reader(bytes.NewReader(sealed[at:at+length]), o.Size()-1, 1)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the end of a truncated object: %v, want %v", err, ErrCorrupt)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	key := NewKey(1)
	secret := fmt.Sprint(key.secret[:])
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, got := range []string{fmt.Sprintf(verb, key), fmt.Sprintf(verb, &key), fmt.Sprintf(verb, []Key{key})} {
			if strings.Contains(got, secret) || strings.Contains(got, fmt.Sprintf("%x", key.secret[:])) || !strings.Contains(got, "[redacted]") {
				t.Errorf("%s prints %s", verb, got)
			}
		}
	}
	if got := key.LogValue().String(); got != "[redacted]" {
		t.Errorf("a log shows %s", got)
	}
}

func TestNonces(t *testing.T) {
	seen := map[[12]byte]bool{}
	for _, i := range []int64{0, 1, 255, 256, 1 << 32, 1<<63 - 1} {
		for _, last := range []bool{false, true} {
			n := nonce(i, last)
			if seen[n] || int64(binary.BigEndian.Uint64(n[3:11])) != i {
				t.Errorf("nonce of segment %d, last %v: %x", i, last, n)
			}
			seen[n] = true
		}
	}
}
