package wal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
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

// TestOrphanedFiles: when only its own file of a generation is lost, its WAL is not, whether the file comes back from a copy, is made
// anew, or both.
func TestOrphanedFiles(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
	fork := b.Pos()
	if err == nil {
		err = errors.Join(appendAll(w, b, func(xlog.LSN) {}), w.Close(), a.Create(2, &Parent{1, 1, fork}))
	}
	if err != nil {
		t.Fatal(err)
	}
	for b.Pos() < 5*smallSegment {
		b.Record(21, 0, xlogtest.MainData(make([]byte, 50_000)))
	}
	if w, err = a.Writer(2); err == nil {
		err = w.Identify(77, smallSegment, 1)
	}
	var at xlog.LSN
	if err == nil {
		at, err = w.Start(1, fork)
	}
	if err == nil {
		err = w.Append(at, b.Bytes()[at-b.Start:])
	}
	if err == nil {
		_, _, err = w.Sync()
	}
	if err = errors.Join(err, w.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	stored, err := StoredIn(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	identify := func(a *Archive, generation int) error {
		w, err := a.Writer(generation)
		if err != nil {
			return err
		}
		return errors.Join(w.Identify(77, smallSegment, 1), w.Close())
	}
	for name, of := range map[string]struct {
		lost      string // the generation
		bringBack func(*Archive) error
	}{
		"from a copy": {"1", func(a *Archive) error { return a.Regain(stored) }},
		"anew":        {"1", func(a *Archive) error { return errors.Join(a.Create(1, nil), identify(a, 1)) }},
		"anew, and then from a copy": {"2", func(a *Archive) error {
			return errors.Join(a.Create(2, nil), a.Regain(stored), identify(a, 2))
		}},
		"anew, and from a copy after the first WAL": {"2", func(a *Archive) error {
			return errors.Join(a.Create(2, nil), identify(a, 2), a.Regain(stored))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyArchive(t, a.dir)
			if err := os.Remove(filepath.Join(dir, of.lost, generationFile)); err != nil {
				t.Fatal(err)
			}
			a := mustOpenArchive(t, dir)
			if err := of.bringBack(a); err != nil {
				t.Fatal(err)
			}
			if gap, _, err := a.FindLost(t.Context(), Position{1, 1, b.Start}, 2, true); gap != nil || err != nil {
				t.Errorf("lost are %+v, %v", gap, err)
			}
			if err := a.Check(t.Context(), 1, 1, b.Start, fork, nil); err != nil {
				t.Errorf("the WAL of the generation: %v", err)
			}
			if err := a.Check(t.Context(), 2, 1, b.Start, b.Pos(), nil); err != nil {
				t.Errorf("the WAL of both: %v", err)
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
