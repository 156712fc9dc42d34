package meta

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// TestReserve: after a start, changes find free pages in a file that had none but the reserve, so they succeed on a full
// disk, on which the file cannot grow.
func TestReserve(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	for start := range 4 {
		db, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		before := sizeOf(t, db)
		for i := range 40 {
			update(t, db, set(fmt.Sprint("start ", start, " ", i), fmt.Sprintf("%04000d", i)))
		}
		if after := sizeOf(t, db); start > 0 && after != before {
			t.Errorf("start %d: the file grew from %d to %d", start, before, after)
		}
		if err := errors.Join(db.FillReserve(), db.FillReserve()); err != nil {
			t.Fatal(err)
		}
		exhaustPages(t, db, start)
		if err := errors.Join(check(db), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReserveIsReused: the reserve does not make the file grow with every start.
func TestReserveIsReused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	var sizes []int64
	for range 10 {
		db, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			update(t, db, set(fmt.Sprint(i), fmt.Sprintf("%04000d", i)))
		}
		if err := db.FillReserve(); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, sizeOf(t, db))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if last := sizes[len(sizes)-1]; last > 2*sizes[0] {
		t.Errorf("the sizes of the file at its starts: %d", sizes)
	}
}

// TestReleasedReserve: a release without free pages other than those of the last commit.
func TestReleasedReserve(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	if err := db.FillReserve(); err != nil {
		t.Fatal(err)
	}
	exhaustPages(t, db, 0)
	before := sizeOf(t, db)
	if err := db.ReleaseReserve(); err != nil {
		t.Fatal(err)
	}
	for i := range reserveRows / 2 {
		update(t, db, set(fmt.Sprint("after ", i), string(make([]byte, reserveRow))))
	}
	if after := sizeOf(t, db); after != before {
		t.Errorf("the file grew from %d to %d", before, after)
	}
	if err := db.ReleaseReserve(); err != nil {
		t.Errorf("the release of a released reserve: %v", err)
	}
}

// sizeOf returns where the pages in use end.
func sizeOf(t *testing.T, db *DB) (size int64) {
	t.Helper()
	view(t, db, func(tx *Tx) error { size = tx.bolt.tx.Size(); return nil })
	return size
}

// exhaustPages adds rows until the file has grown several times: it then has no other free pages than those of the last
// commit.
func exhaustPages(t *testing.T, db *DB, round int) {
	t.Helper()
	for i, grown := 0, 0; grown < 5; i++ {
		before := sizeOf(t, db)
		update(t, db, set(fmt.Sprint("exhaust ", round, " ", i), fmt.Sprintf("%01000d", i)))
		if sizeOf(t, db) > before {
			grown++
		}
	}
}
