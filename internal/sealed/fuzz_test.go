package sealed

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzOpen reads anything as a sealed object. It must end with one of the package's
// errors, and never with bytes that the key did not seal.
func FuzzOpen(f *testing.F) {
	key := Key{number: 1}
	plain := random(SegmentSize + 100)
	sealed := sealAll(f, key, name, plain)
	f.Add(sealed, int64(len(sealed)))
	f.Add(sealed[:HeaderSize+tagSize], int64(HeaderSize+tagSize))
	f.Add(sealAll(f, key, name, nil), int64(HeaderSize+tagSize))
	f.Add([]byte(magic), int64(-1))
	keys := ringOf(f, key, Key{number: 2, secret: [masterSize]byte{1}})
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		got, err := func() ([]byte, error) {
			r, err := NewReader(bytes.NewReader(b), size, keys, name)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		}()
		known := errors.Is(err, ErrCorrupt) || errors.Is(err, ErrMismatch) || errors.Is(err, ErrNoKey) || errors.Is(err, ErrVersion)
		switch {
		case err != nil && !known:
			t.Errorf("an unknown error: %v", err)
		case err == nil && !bytes.Equal(got, plain) && len(got) > 0:
			t.Error("an object opens that was never sealed")
		}
	})
}

// FuzzRoundTrip seals anything and reads a range of it back.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("plain"), "name", uint32(1), uint32(3))
	f.Add(random(2*SegmentSize), "e/1/x", uint32(SegmentSize-1), uint32(2))
	key := NewKey(1)
	keys := ringOf(f, key)
	f.Fuzz(func(t *testing.T, plain []byte, name string, offset, length uint32) {
		sealed := sealAll(t, key, name, plain)
		if got, err := openAll(sealed, keys, name); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d bytes do not come back: %v", len(plain), err)
		}
		from := min(int64(offset), int64(len(plain)))
		to := min(from+int64(length), int64(len(plain)))
		o, err := NewOpener(sealed[:HeaderSize], int64(len(sealed)), keys, name)
		if err != nil {
			t.Fatal(err)
		}
		at, n := o.Range(from, to-from)
		got, err := io.ReadAll(o.Reader(bytes.NewReader(sealed[at:at+n]), from, to-from))
		if err != nil || !bytes.Equal(got, plain[from:to]) {
			t.Fatalf("[%d, %d) does not come back: %v", from, to, err)
		}
	})
}

// FuzzParseKey reads anything as the inside of a wrapped key.
func FuzzParseKey(f *testing.F) {
	f.Add(wrappedTitle + "\nnumber 1\nsecret " + zeros())
	f.Add(wrappedTitle + "\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseKey(text); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Errorf("an unknown error: %v", err)
		}
	})
}
