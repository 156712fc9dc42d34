package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	publish := func(temporary, text string) error {
		return WriteNew(OS{}, filepath.Join(dir, temporary), path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	if err := publish("a", "first"); err != nil {
		t.Fatal(err)
	}
	if err := publish("b", "second"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second file of one name: %v, want %v", err, fs.ErrExist)
	}
	if got, _ := os.ReadFile(path); string(got) != "first" {
		t.Errorf("the file holds %q", got)
	}
	cause := errors.New("unplugged")
	err := WriteNew(OS{}, filepath.Join(dir, "c"), filepath.Join(dir, "other"), func(io.Writer) error { return cause })
	if !errors.Is(err, cause) {
		t.Errorf("a write that fails: %v, want %v", err, cause)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v; want the file alone", entries, err)
	}
}

// TestRenameNewRace: of many at once, one moves its file to the name, with either way
// of renaming.
func TestRenameNewRace(t *testing.T) {
	for what, rename := range map[string]func(from, to string) error{"rename": OS{}.RenameNew, "link": linkAndRemove} {
		dir := t.TempDir()
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 16 {
			from := filepath.Join(dir, fmt.Sprint("from", i))
			if err := os.WriteFile(from, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				switch err := rename(from, filepath.Join(dir, "to")); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, fs.ErrExist):
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%s: %d of 16 moved their file to one name", what, won.Load())
		}
	}
}

// TestLinkMeetsItself: a link that was made and whose answer was lost is a success.
func TestLinkMeetsItself(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := errors.Join(os.WriteFile(from, nil, 0o600), os.Link(from, to)); err != nil {
		t.Fatal(err)
	}
	if err := linkAndRemove(from, to); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name remains: %v", err)
	}
}
