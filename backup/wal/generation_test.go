package wal

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
)

// storeThree archives b as generations 1, 2, and 3, each forked from the start of the previous one, and returns the
// archive's directory.
func storeThree(t *testing.T, b *xlogtest.Builder) (dir string) {
	t.Helper()
	a := store(t, b)
	for number := 2; number <= 3; number++ {
		if err := a.Create(number, &Parent{Generation: number - 1, Timeline: 1, Fork: b.Start}); err != nil {
			t.Fatal(err)
		}
		w, err := a.Writer(number)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Identify(77, smallSegment, 1)
		if err == nil {
			err = appendAll(w, b, func(xlog.LSN) {})
		}
		w.compressor.wait()
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return a.dir
}

// contents returns the contents of the files below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%s has %v, %v", dir, names, err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(content)
	}
	return all
}

// TestDamagedGeneration: a generation with unreliable metadata is reported and not changed; the others are
// unaffected.
func TestDamagedGeneration(t *testing.T) {
	t.Parallel()
	b := longWAL(2, nil)
	from := storeThree(t, b)
	history := xlog.HistoryName(2)
	for name, damage := range map[string]func(dir string) (file string, err error){
		"name": func(dir string) (string, error) {
			return generationFile, flipByte(filepath.Join(dir, generationFile), 2)
		},
		"CRC": func(dir string) (string, error) {
			return generationFile, flipByte(filepath.Join(dir, generationFile), 18)
		},
		"content": func(dir string) (string, error) {
			return generationFile, flipByte(filepath.Join(dir, generationFile), 60)
		},
		"empty": func(dir string) (string, error) {
			return generationFile, os.Truncate(filepath.Join(dir, generationFile), 0)
		},
		"history": func(dir string) (string, error) {
			return history, os.WriteFile(filepath.Join(dir, history), []byte("no history"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyArchive(t, from)
			file, err := damage(filepath.Join(dir, "2"))
			if err != nil {
				t.Fatal(err)
			}
			before := contents(t, filepath.Join(dir, "2"))
			for _, readOnly := range []bool{true, false} {
				var said bytes.Buffer
				a, err := Open(dir, Options{ReadOnly: readOnly, Logger: slog.New(slog.NewTextHandler(&said, nil))})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { a.Close() })
				expectLeftOut(t, a, b, file)
				if !strings.Contains(said.String(), "level=ERROR") || !strings.Contains(said.String(), filepath.Join("2", file)) {
					t.Errorf("the log says %q", said.String())
				}
				if !readOnly {
					expectUntouched(t, a, b)
				}
			}
			if after := contents(t, filepath.Join(dir, "2")); !equalContents(before, after) {
				t.Error("a damaged generation was changed")
			}
		})
	}
}

func flipByte(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[at] ^= 0x10
	return os.WriteFile(path, data, 0o600)
}

func equalContents(a, b map[string]string) bool {
	for name := range a {
		if a[name] != b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

// expectLeftOut checks that generation 2 of a is damaged, and the others are not.
func expectLeftOut(t *testing.T, a *Archive, b *xlogtest.Builder, file string) {
	t.Helper()
	for number := 1; number <= 3; number++ {
		err := a.Check(t.Context(), number, 1, b.Start, b.Pos(), nil)
		if number != 2 && err != nil || number == 2 && (!errors.Is(err, ErrGap) || !strings.Contains(err.Error(), filepath.Join("2", file))) {
			t.Errorf("generation %d: %v", number, err)
		}
	}
	problems, err := a.Verify(t.Context())
	if err != nil || len(problems) != 1 || problems[0].Generation != 2 || problems[0].File != file {
		t.Errorf("verify: %v, %v", problems, err)
	}
	if problems := a.Missing([]Keep{{1, b.Start}, {3, b.Start}}); len(problems) > 0 {
		t.Errorf("missing: %v", problems)
	}
}

// expectUntouched tries to write to the damaged generation 2 of a, to fork from it, and to prune it and generations
// that may have forked from it.
func expectUntouched(t *testing.T, a *Archive, b *xlogtest.Builder) {
	t.Helper()
	if err := a.Create(2, nil); !errors.Is(err, ErrGap) {
		t.Errorf("create: %v", err)
	}
	if _, err := a.Writer(2); !errors.Is(err, ErrGap) {
		t.Errorf("write: %v", err)
	}
	if err := a.Create(4, &Parent{Generation: 2, Timeline: 1, Fork: b.Pos()}); !errors.Is(err, ErrGap) {
		t.Errorf("fork: %v", err)
	}
	if _, err := a.Prune([]Keep{{1, End}}); err != nil {
		t.Error(err)
	}
	if err := a.Check(t.Context(), 3, 1, b.Start, b.Pos(), nil); err != nil {
		t.Errorf("what forked from a damaged one was pruned: %v", err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := a.Link(copied); err != nil {
		t.Fatal(err)
	}
	if !equalContents(contents(t, filepath.Join(a.dir, "2")), contents(t, filepath.Join(copied, "2"))) {
		t.Error("a copy of the archive lacks what is damaged")
	}
}

// TestForeignNames: files that belong to no generation are reported and not changed.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	b := longWAL(1, nil)
	dir := copyArchive(t, store(t, b).dir)
	for _, name := range []string{"lost+found", "01"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "2"), []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	a, err := Open(dir, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Check(t.Context(), 1, 1, b.Start, b.Pos(), nil); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"lost+found", "01", "2"} {
		if !strings.Contains(said.String(), filepath.Join(dir, name)) {
			t.Errorf("the log does not name %s: %s", name, said.String())
		}
	}
	if err := a.Create(2, nil); err == nil {
		t.Error("a generation was made in the place of a file")
	}
}
