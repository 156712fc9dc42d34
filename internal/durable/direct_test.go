package durable

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

func TestFits(t *testing.T) {
	buffer := NewBuffer(4 * Align)
	defer runtime.KeepAlive(buffer)
	b := buffer.Bytes
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
		if got := fits(c.p, c.at); got != c.want {
			t.Errorf("%d bytes at %d fit: %t", len(c.p), c.at, got)
		}
	}
}

// TestSetDirect writes pages directly and the rest through the page cache.
func TestSetDirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buffer := NewBuffer(3 * Align)
	defer runtime.KeepAlive(buffer)
	want := buffer.Bytes
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

// memory is a DirectWriterAt in memory that rejects direct writes as configured by its fields.
type memory struct {
	content []byte
	direct  bool
	writes  int   // number of direct writes
	set     error // error of SetDirect
	write   error // error of a direct write
	part    int   // bytes that it writes nevertheless
}

func (m *memory) SetDirect(direct bool) error {
	if direct && m.set != nil {
		return m.set
	}
	m.direct = direct
	return nil
}

// WriteAt writes only at the end.
func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if at != int64(len(m.content)) {
		return 0, fmt.Errorf("written at %d, behind %d bytes", at, len(m.content))
	}
	return m.Write(p)
}

func (m *memory) Write(p []byte) (int, error) {
	if !m.direct {
		m.content = append(m.content, p...)
		return len(p), nil
	}
	m.writes++
	if !fits(p, int64(len(m.content))) {
		return 0, syscall.EINVAL
	}
	if m.write != nil {
		m.content = append(m.content, p[:m.part]...)
		return m.part, m.write
	}
	m.content = append(m.content, p...)
	return len(p), nil
}

// TestWriteMode alternates aligned and unaligned writes, with and without support for direct writes.
func TestWriteMode(t *testing.T) {
	buffer := NewBuffer(4 * Align)
	defer runtime.KeepAlive(buffer)
	rand.Read(buffer.Bytes)
	full := errors.New("full")
	for _, c := range []struct {
		name   string
		file   memory
		direct int // number of direct writes tried
		err    error
	}{
		{"can", memory{}, 3, nil},
		{"refuses", memory{set: syscall.EINVAL}, 0, nil},
		{"wants it rounder", memory{write: syscall.EINVAL}, 1, nil},
		{"in part", memory{write: syscall.EINVAL, part: 1000}, 1, nil},
		{"full", memory{write: full, part: 1000}, 1, full},
	} {
		for name, write := range map[string]func(*WriteMode, DirectWriterAt, []byte, int64) (int, error){
			"Write":   func(m *WriteMode, f DirectWriterAt, p []byte, at int64) (int, error) { return m.Write(f, p, at) },
			"WriteAt": (*WriteMode).WriteAt,
		} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				f, want, m := c.file, []byte(nil), WriteMode(0)
				for _, size := range []int{Align, 2 * Align, 7, Align - 7, 4 * Align, 100} {
					n, err := write(&m, &f, buffer.Bytes[:size], int64(len(want)))
					want = append(want, buffer.Bytes[:n]...)
					if !errors.Is(err, c.err) {
						t.Fatalf("%d bytes: wrote %d, %v", size, n, err)
					}
					if err != nil {
						break
					}
				}
				if !bytes.Equal(f.content, want) || f.writes != c.direct {
					t.Errorf("%d of %d bytes are there, after %d direct writes", len(f.content), len(want), f.writes)
				}
				if err := m.Buffered(&f); err != nil || f.direct {
					t.Errorf("still direct, %v", err)
				}
			})
		}
	}
}
