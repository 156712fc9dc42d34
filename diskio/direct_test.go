package diskio

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFits(t *testing.T) {
	b := Buffer(4 * Align)
	for _, c := range []struct {
		p    []byte
		at   int64
		want bool
	}{
		{b, 0, true},
		{b[Align : 3*Align], 5 * Align, true},
		{b[:Align-1], 0, false},
		{b[1 : 1+Align], 0, false},
		{b, 512, false},
		{nil, 0, false},
	} {
		if got := Fits(c.p, c.at); got != c.want {
			t.Errorf("%d bytes at %d fit: %t", len(c.p), c.at, got)
		}
	}
}

// TestSetDirect writes pages directly and the rest after them as ever.
func TestSetDirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := Buffer(3 * Align)
	rand.Read(want)
	if err := SetDirect(f, true); errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("not here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(want[:2*Align]); err != nil {
		t.Fatal(err)
	}
	if err := SetDirect(f, false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(want[2*Align : 2*Align+7]); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want[:2*Align+7]) {
		t.Errorf("%d bytes are not what was written, %v", len(got), err)
	}
}
