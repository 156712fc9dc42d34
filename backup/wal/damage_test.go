package wal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"holdfast/backup/wal/xlog"
)

// TestVerifyNamesDamage flips one byte of each kind of file.
func TestVerifyNamesDamage(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	a := store(t, b)
	for _, suffix := range []string{compressedSuffix, summarySuffix, partialSuffix} {
		name := xlog.SegmentName(1, 2, smallSegment) + suffix
		if suffix == partialSuffix {
			name = xlog.SegmentName(1, 3, smallSegment) + suffix
		}
		path := filepath.Join(a.dir, "1", name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, 9, 50, len(data) / 3, len(data) / 2} {
			data[at] ^= 0x10
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			problems, err := a.Verify(t.Context())
			if err != nil || len(problems) != 1 || problems[0].File != name {
				t.Errorf("byte %d of %s: %v, %v", at, name, problems, err)
			}
			err = a.Check(t.Context(), 1, 1, b.Start, b.Pos(), nil)
			if suffix != summarySuffix && !errors.Is(err, ErrGap) {
				t.Errorf("byte %d of %s: %v", at, name, err)
			}
			_, err = a.ChangedPages(t.Context(), 1, 1, b.Start, b.Pos())
			if (suffix == summarySuffix && err != nil) || (suffix != summarySuffix && !errors.Is(err, ErrGap)) {
				t.Errorf("changed pages with byte %d of %s: %v", at, name, err)
			}
			data[at] ^= 0x10
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if problems, err := a.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestMissing: missing WAL has later WAL, is after the start of a backup, and is not a recorded gap.
func TestMissing(t *testing.T) {
	t.Parallel()
	b := longWAL(5, nil)
	from := store(t, b)
	from.Close()
	for name, c := range map[string]struct {
		removed []uint64
		start   xlog.LSN
		gap     *Gap
		forks   xlog.LSN // a generation forks there; 0 = none
		missing string
	}{
		"whole":                      {start: b.Start},
		"its end":                    {start: b.Start, removed: []uint64{4, 5}},
		"its beginning":              {start: 3*smallSegment + 5000, removed: []uint64{1, 2}},
		"before a backup":            {start: 4*smallSegment + 5000, removed: []uint64{2}},
		"in the middle":              {start: b.Start, removed: []uint64{3}, missing: xlog.SegmentName(1, 3, smallSegment)},
		"two":                        {start: b.Start, removed: []uint64{2, 3}, missing: xlog.SegmentName(1, 2, smallSegment)},
		"where a backup starts":      {start: 2*smallSegment + 5000, removed: []uint64{2}, missing: xlog.SegmentName(1, 2, smallSegment)},
		"never come":                 {start: b.Start, removed: []uint64{2, 3}, gap: &Gap{Timeline: 1, From: b.Start + 10, To: 4 * smallSegment}},
		"never come, and a segment":  {start: b.Start, removed: []uint64{2, 3}, gap: &Gap{Timeline: 1, From: b.Start + 10, To: 3 * smallSegment}, missing: xlog.SegmentName(1, 2, smallSegment)},
		"its end, before a fork":     {start: b.Start, removed: []uint64{4, 5}, forks: 5*smallSegment + 5000, missing: xlog.SegmentName(1, 4, smallSegment)},
		"its end, from a fork on":    {start: b.Start, removed: []uint64{4, 5}, forks: 4*smallSegment + 5000},
		"a fork before every backup": {start: 3 * smallSegment, removed: []uint64{1, 2}, forks: 2*smallSegment + 5000},
		"the segment of a fork":      {start: b.Start, removed: []uint64{5}, forks: 5*smallSegment + 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyArchive(t, from.dir)
			for _, n := range c.removed {
				removeSegment(t, filepath.Join(dir, "1"), n)
			}
			a, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if c.gap != nil {
				known := *a.branches[1].info()
				known.Gaps = []Gap{*c.gap}
				a.branches[1].known.Store(&known)
			}
			if c.forks != 0 {
				child := newBranch(2, "", Generation{Parent: &Parent{Generation: 1, Timeline: 1, Fork: c.forks}, SegmentSize: smallSegment, Timeline: 2})
				key := segmentKey{2, uint64(c.forks) / smallSegment}
				child.segments[key] = &segment{segmentKey: key, end: c.forks + 1}
				a.branches[2] = child
			}
			problems := a.Missing([]Keep{{1, c.start}})
			found := ""
			for _, p := range problems {
				found += p.File
			}
			if found != c.missing {
				t.Errorf("%v, want %q", problems, c.missing)
			}
		})
	}
}

// TestFindLost: what is missing or damaged since a backup is a gap, and once that is recorded, the backup leads no further.
func TestFindLost(t *testing.T) {
	t.Parallel()
	b := longWAL(5, nil)
	from := store(t, b)
	from.Close()
	for name, c := range map[string]struct {
		start              xlog.LSN
		removed, cut, rots []uint64
		lost               [2]uint64 // the segments from and to
	}{
		"whole":           {start: b.Start},
		"before a backup": {start: 4*smallSegment + 5000, removed: []uint64{2}},
		"missing":         {start: b.Start, removed: []uint64{3}, lost: [2]uint64{3, 4}},
		"two":             {start: b.Start, removed: []uint64{2}, cut: []uint64{3}, lost: [2]uint64{2, 4}},
		"not the same":    {start: b.Start, removed: []uint64{2, 4}, lost: [2]uint64{2, 3}},
		"cut":             {start: b.Start, cut: []uint64{3}, lost: [2]uint64{3, 4}},
		"damaged":         {start: b.Start, rots: []uint64{3}, lost: [2]uint64{3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := Open(copyArchive(t, from.dir), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			change := func(n uint64, do func([]byte) []byte) {
				path := filepath.Join(a.dir, "1", xlog.SegmentName(1, n, smallSegment)+compressedSuffix)
				data, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, do(data), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range c.removed {
				removeSegment(t, filepath.Join(a.dir, "1"), n)
			}
			for _, n := range c.cut {
				change(n, func(data []byte) []byte { return data[:len(data)-1] })
			}
			for _, n := range c.rots {
				change(n, func(data []byte) []byte { data[len(data)/2] ^= 0x10; return data })
			}
			position := Position{Generation: 1, Timeline: 1, LSN: c.start}
			gap, generation, err := a.FindLost(t.Context(), position, 1, len(c.rots) > 0)
			if c.lost == [2]uint64{} {
				if gap != nil || err != nil {
					t.Errorf("%+v, %v", gap, err)
				}
				return
			}
			from, to := xlog.LSN(c.lost[0]*smallSegment), xlog.LSN(c.lost[1]*smallSegment)
			if err != nil || gap == nil || generation != 1 || gap.From != from || gap.To != to {
				t.Fatalf("%+v of generation %d, %v", gap, generation, err)
			}
			if gap, _, err := a.FindLost(t.Context(), position, 1, false); len(c.rots) > 0 && (gap != nil || err != nil) {
				t.Errorf("without reading: %+v, %v", gap, err)
			}
			if err := a.AddGap(1, *gap); err != nil {
				t.Fatal(err)
			}
			for start, blocked := range map[xlog.LSN]bool{c.start: true, to - 1: true, to: false} {
				if got := a.GapAfter(Position{Generation: 1, Timeline: 1, LSN: start}, 1); (got != nil) != blocked {
					t.Errorf("the gap after %v is %+v", start, got)
				}
			}
		})
	}
}

// removeSegment removes all files of a segment of the first timeline.
func removeSegment(t *testing.T, dir string, n uint64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, xlog.SegmentName(1, n, smallSegment)+".*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("segment %d: %v, %v", n, files, err)
	}
	for _, path := range files {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartialDamaged: no record of a partial segment is missed silently, neither its last, which spans pages, nor those
// after the end of a truncated file.
func TestPartialDamaged(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	a := store(t, b)
	name := xlog.SegmentName(1, 3, smallSegment) + partialSuffix
	path := filepath.Join(a.dir, "1", name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(data)
	flipped[uint64(b.Pos())%smallSegment-100] ^= 0x10
	for what, damaged := range map[string][]byte{"flipped": flipped, "cut": data[:10*xlog.PageSize]} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := a.ChangedPages(t.Context(), 1, 1, b.Start, b.Pos())
		expectGap(t, err, xlog.SegmentName(1, 3, smallSegment), "damaged")
		if _, err := a.Window(t.Context(), 1, 1, b.Start); !errors.Is(err, ErrGap) {
			t.Errorf("%s: the window: %v", what, err)
		}
		problems, err := a.Verify(t.Context())
		if err != nil || len(problems) != 1 || problems[0].File != name {
			t.Errorf("%s: %v, %v", what, problems, err)
		}
	}
}

// TestResolveDuplicates: only one file is left of a segment that exists twice, whichever of the two is damaged.
func TestResolveDuplicates(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"", compressedSuffix, partialSuffix} {
		b := longWAL(3, nil)
		a := store(t, b)
		a.Close()
		partial := bytes.Clone(b.Bytes()[smallSegment : 2*smallSegment])
		path := filepath.Join(a.dir, "1", xlog.SegmentName(1, 2, smallSegment))
		compressed, err := os.ReadFile(path + compressedSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if damage == compressedSuffix {
			compressed[len(compressed)/2] ^= 1
		} else if damage == partialSuffix {
			partial[len(partial)/2] ^= 1
		}
		err = errors.Join(os.WriteFile(path+compressedSuffix, compressed, 0o600), os.WriteFile(path+partialSuffix, partial, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		expectWAL(t, a.dir, b, b.Pos())
		a, w, err := openWriter(a.dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.compressor.wait()
		w.Close()
		a.Close()
		if _, err := os.Lstat(path + partialSuffix); !notExist(err) {
			t.Errorf("the partial file is left: %v", err)
		}
	}
}

// TestStalePages: a partial file with an old segment's pages after the new ones ends where the new ones do; one that
// continues into a missing segment ends at the last complete record.
func TestStalePages(t *testing.T) {
	t.Parallel()
	old, b := longWAL(3, nil), longWAL(3, map[int]int64{3: 77})
	cut := 30 * xlog.PageSize
	dir := filepath.Join(t.TempDir(), "wal")
	a, w, err := openWriter(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	a.Close()
	stale := bytes.Clone(old.Bytes()[smallSegment : 2*smallSegment]) // addresses of the second segment
	copy(stale, b.Bytes()[:cut])
	path := filepath.Join(dir, "1", xlog.SegmentName(1, 1, smallSegment)+partialSuffix)
	if err := os.WriteFile(path, stale, 0o600); err != nil {
		t.Fatal(err)
	}
	a, w, err = openWriter(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, end, _ := w.Latest()
	if end > b.Start+xlog.LSN(cut) || end < b.Start+xlog.LSN(cut)-8*xlog.PageSize {
		t.Errorf("the partial file ends at %v, its new pages at %v", end, b.Start+xlog.LSN(cut))
	}
	if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
		t.Error(err)
	}
	w.compressor.wait()
	w.Close()
	a.Close()
	expectWAL(t, dir, b, b.Pos())
	// Without the third segment, the record that continues into it is incomplete.
	last := filepath.Join(dir, "1", xlog.SegmentName(1, 3, smallSegment)+partialSuffix)
	if err := os.Remove(last); err != nil {
		t.Fatal(err)
	}
	if a, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	target := Target{Generation: 1, Since: b.Start, LSN: b.Start + 2*smallSegment}
	resolution, err := a.Resolve(t.Context(), target)
	if err != nil || resolution.Last.End > target.LSN || resolution.Last.End < target.LSN-60000 {
		t.Errorf("%+v, %v", resolution, err)
	}
	expectGap(t, a.Covers(1, 1, b.Start, b.Pos()), xlog.SegmentName(1, 3, smallSegment), "missing")
}
