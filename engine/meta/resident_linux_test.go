package meta

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestRelease reads the whole file, which then is part of this process until it
// is released, and again afterwards.
func TestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	const size = 4 << 20
	update(t, db, func(tx *Tx) error { return tx.PutSetting("large", bytes.Repeat([]byte("x"), size)) })
	read := func() {
		t.Helper()
		view(t, db, func(tx *Tx) error {
			if got := tx.Setting("large"); len(got) != size || bytes.Count(got, []byte("x")) != size {
				return fmt.Errorf("%d bytes are not what was written", len(got))
			}
			return nil
		})
	}
	for range 2 {
		for deadline := time.Now().Add(10 * time.Second); resident(t, path) < size; read() { // the loop releases too
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes are resident after reading %d", resident(t, path), size)
			}
		}
		db.release()
		if got := resident(t, path); got > size/4 {
			t.Errorf("%d bytes are still resident", got)
		}
	}
}

// resident returns how many bytes of a mapped file are in this process's memory.
func resident(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, mapping, found := bytes.Cut(text, []byte(path))
	if !found {
		t.Fatal("the file is not mapped")
	}
	for line := range bytes.Lines(mapping) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "Rss:" {
			n, err := strconv.Atoi(string(fields[1]))
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no Rss")
	return 0
}
