package durable

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestMeasured compares the footprint with the files after each change.
func TestMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	fsys := Measured{OS{}, &Footprint{}}
	write := func(f File, err error, at int64, size int) error {
		if err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, size), at)
		return errors.Join(err, f.Sync(), f.Close())
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error { f, err := fsys.Create(a); return write(f, err, 0, 10_000) }},
		{"reopen", func() error { f, err := fsys.Reopen(a); return write(f, err, 10_000, 20_000) }},
		{"allocate", func() error {
			f, err := fsys.Create(b)
			if err != nil {
				return err
			}
			return errors.Join(f.Allocate(50_000), f.Close())
		}},
		{"truncate", func() error { return fsys.Truncate(b, 5000) }},
		{"replace", func() error { return fsys.Rename(a, b) }},
		{"remove", func() error { return fsys.Remove(b) }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if want, err := MeasureOccupied(dir); err != nil || fsys.Footprint.Bytes() != want {
			t.Errorf("%s: counted %d bytes, there are %d, %v", step.name, fsys.Footprint.Bytes(), want, err)
		}
	}
}
