package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMeasureOccupied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"empty": 0, "byte": 1, "sub/block": 4096, "sub/more": 4097} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "sparse"), 16<<20); err != nil { // occupies nothing
		t.Fatal(err)
	}
	if err := os.Symlink("byte", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got, err := MeasureOccupied(dir); got != 4*4096 || err != nil {
		t.Errorf("the files occupy %d bytes, %v", got, err)
	}
	if got, err := MeasureOccupied(filepath.Join(dir, "none")); got != 0 || err != nil {
		t.Errorf("an absent directory occupies %d bytes, %v", got, err)
	}
}
