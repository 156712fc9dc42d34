package blobstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// badSector is a file of which the disk does not give back some bytes.
type badSector struct {
	io.ReaderAt
	from, to int64
	err      error
}

func (b badSector) ReadAt(p []byte, off int64) (int, error) {
	if off >= b.to || off+int64(len(p)) <= b.from {
		return b.ReaderAt.ReadAt(p, off)
	}
	n, err := b.ReaderAt.ReadAt(p[:max(0, b.from-off)], off)
	if err == nil {
		err = b.err
	}
	return n, err
}

// flipped is a file with one flipped bit.
type flipped struct {
	io.ReaderAt
	at int64
}

func (f flipped) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, off)
	if i := f.at - off; i >= 0 && i < int64(n) {
		p[i] ^= 1
	}
	return n, err
}

// TestUnreadableSectors: what the disk does not give back of a segment is reported as damage, and costs only the records in it.
// It does not end what was acknowledged, also after a damaged record.
func TestUnreadableSectors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{})
	var starts []int64
	for n := range 40 {
		ref, err := publish(t, s, fmt.Sprint(n)+strings.Repeat("x", 3000))
		if err != nil {
			t.Fatal(err)
		}
		at, _ := ref.position()
		starts = append(starts, at.offset())
	}
	s.Close()
	f, err := os.Open(s.journal.path(1))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	starts = append(starts, info.Size())
	const sector = 4096
	areas := map[int64]int64{} // their ends, by where they begin
	for from := int64(sector); from < info.Size(); from += sector {
		areas[from] = min(from+sector*[]int64{1, 2, 3, 4, 5, 6, 9, 17}[from/sector%8], info.Size())
	}
	for _, damagedBefore := range []bool{false, true} {
		for from, to := range areas {
			bad, damaged := io.ReaderAt(badSector{f, from, to, syscall.EIO}), -1
			if damagedBefore {
				i, _ := slices.BinarySearch(starts, from)
				damaged = i - 1
				bad = flipped{bad, starts[damaged] + 5}
			}
			got := map[int64]bool{}
			var damage []error
			scanned := &segmentFile{ReaderAt: bad, number: 1}
			if err := scanned.scan(info.Size(), func(e Entry, _ []byte) error {
				got[e.Position.offset()] = true
				return nil
			}, func(_ Position, err error) { damage = append(damage, err) }); err != nil {
				t.Fatal(err)
			}
			lost := 0
			for i, start := range starts[:40] {
				if touched := start < to && starts[i+1] > from; !touched && !got[start] && i != damaged {
					lost++
				}
			}
			if lost > 0 || len(damage) == 0 || !errors.Is(damage[0], ErrDamaged) {
				t.Errorf("sector at %d, damage before it %v: %d records that can be read are lost; damage %v", from, damagedBefore, lost, damage)
			}
		}
	}
	broken := &segmentFile{ReaderAt: badSector{f, sector, 2 * sector, syscall.ENOMEM}, number: 1}
	if err := broken.scan(info.Size(), func(Entry, []byte) error { return nil }, func(Position, error) {}); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("without memory: %v", err)
	}
}
