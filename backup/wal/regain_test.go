package wal

import (
	"errors"
	"path/filepath"
	"testing"

	"holdfast/backup/wal/xlog"
)

// TestRegain: what a copy has of the generations that were lost comes back, also of one that was made anew meanwhile, and with it what
// is needed. What is here stays as it is.
func TestRegain(t *testing.T) {
	t.Parallel()
	b := longWAL(2, nil)
	dir := storeThree(t, b)
	stored, err := StoredIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	for what, of := range map[string]struct {
		system  uint64 // of the last generation, which was made anew, 0 for none
		damaged int    // the generation whose file is damaged in the copy, 0 for none
		parents []int  // by number, 0 for none
	}{
		"no WAL received": {0, 0, []int{0, 1, 2}},
		"WAL received":    {77, 0, []int{0, 1, 2}},
		"another cluster": {78, 0, []int{0, 1, 0}},
		"damaged":         {77, 2, []int{0, -1, 0}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "wal")
			a := mustOpenArchive(t, dir)
			if err := a.Create(3, nil); err != nil {
				t.Fatal(err)
			}
			w, err := a.Writer(3)
			if err == nil && of.system != 0 {
				err = w.Identify(of.system, smallSegment, 1)
			}
			if err == nil {
				err = w.AddGap(Gap{Timeline: 1, From: 1, To: 2})
			}
			if err != nil {
				t.Fatal(err)
			}
			had := make([]StoredFile, len(stored))
			for i, f := range stored {
				if had[i] = f; f.Name == generationFile && f.Generation == of.damaged {
					had[i].Content = append([]byte{'x'}, f.Content...)
				}
			}
			for range 2 {
				if err := a.Regain(had); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(w.Close(), a.Close()); err != nil {
				t.Fatal(err)
			}
			a = mustOpenArchive(t, dir)
			for i, parent := range of.parents {
				known, err := a.Generation(i + 1)
				switch {
				case (err == nil) != (parent >= 0):
					t.Errorf("generation %d: %v", i+1, err)
				case parent < 0:
				case (known.Parent == nil) != (parent == 0) || parent > 0 && *known.Parent != Parent{parent, 1, b.Start}:
					t.Errorf("the parent of generation %d is %+v", i+1, known.Parent)
				case i < 2 && (known.SegmentSize != smallSegment || known.System != 77):
					t.Errorf("generation %d: %+v", i+1, known)
				}
			}
			if known, err := a.Generation(3); err != nil || len(known.Gaps) != 1 {
				t.Errorf("what was here is %+v, %v", known, err)
			}
			needs := a.Needs([]Keep{{1, b.Start}, {3, End}})(StoredFile{Generation: 3, Name: xlog.SegmentName(1, uint64(b.Start)/smallSegment, smallSegment) + compressedSuffix})
			if whole := of.parents[1] == 1 && of.parents[2] == 2; needs != whole {
				t.Errorf("the first segment of the last generation is needed: %t", needs)
			}
		})
	}
}

// mustOpenArchive opens an archive until the end of a test.
func mustOpenArchive(t *testing.T, dir string) *Archive {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}
