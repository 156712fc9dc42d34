package meta

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

func TestOpenMakesAPrivateFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	openChecked(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
}

func TestOpenAgainFindsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	for i, want := range []string{"", "1", "2"} {
		db, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		view(t, db, func(tx *Tx) error {
			if got := string(tx.Setting("count")); got != want {
				t.Errorf("opened for the %d. time, count is %q, want %q", i+1, got, want)
			}
			return nil
		})
		update(t, db, func(tx *Tx) error { return tx.PutSetting("count", []byte{byte('1' + i)}) })
		if err := errors.Join(check(db), db.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"a directory that is not there": func(path string) error { return os.Remove(filepath.Dir(path)) },
		"a directory":                   func(path string) error { return os.Mkdir(path, 0o700) },
		"something else":                func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("holdfast"), 8192), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sub", "meta.db")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), make(path)); err != nil {
				t.Fatal(err)
			}
			db, err := Open(path)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v, want an error that names %s", db, err, path)
			}
		})
	}
}

func TestOpenTwiceIsLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db := openChecked(t, path)
	if _, err := Open(path); !errors.Is(err, ErrLocked) {
		t.Errorf("the second Open gives %v, want ErrLocked", err)
	}
	update(t, db, func(tx *Tx) error { return tx.PutSetting("still", []byte("open")) })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	openChecked(t, path)
}

func TestOpenInAnotherProcessIsLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	holder := helper(t, "hold", path)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "open\n" {
		t.Fatalf("the helper says %q, %v", line, err)
	}
	if _, err := Open(path); !errors.Is(err, ErrLocked) {
		t.Errorf("Open gives %v, want ErrLocked", err)
	}
	if err := errors.Join(stdin.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	openChecked(t, path)
}

// holdOpen runs in the other process: it keeps the store open until its input ends.
func holdOpen(path string) {
	db, err := Open(path)
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("open\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if db.Close() != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// helper returns a command that runs this test binary as a helper, which ends with the
// test.
func helper(t testing.TB, what string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+what)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestOpenRefusesANewerFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	writeFormat(t, path, binary.BigEndian.AppendUint32(nil, Format+1))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the file must also be released
		_, err = Open(path)
		if newer, ok := errors.AsType[*NewerFormatError](err); !ok || newer.Found != Format+1 {
			t.Errorf("got %v, want a NewerFormatError", err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}

func TestOpenFindsADamagedFormat(t *testing.T) {
	t.Parallel()
	for name, version := range map[string][]byte{"none": nil, "short": {1}, "long": {0, 0, 0, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "meta.db")
			writeFormat(t, path, version)
			for range 2 {
				if _, err := Open(path); !isCorrupt(err) {
					t.Errorf("got %v, want a CorruptError", err)
				}
			}
		})
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*CorruptError](err)
	return ok
}

// writeFormat creates a store and overwrites its format.
func writeFormat(t *testing.T, path string, version []byte) {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.bolt.Update(func(tx *bbolt.Tx) error {
		if version == nil {
			return tx.Bucket(formatBucket).Delete(formatKey)
		}
		return tx.Bucket(formatBucket).Put(formatKey, version)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFileIsFound changes one byte of a record in the file.
func TestDamagedFileIsFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := model.Project{ID: "proj_2", Organization: "org_1", Name: "a-name-like-no-other"}
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Projects().Insert(model.Project{ID: "proj_1", Organization: "org_1", Name: "whole"}),
			tx.Projects().Insert(damaged))
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(data, []byte(`"name":"a-name-like-no-other"`), []byte(`"name":"a-name-like-mo-other"`))
	if bytes.Equal(data, changed) {
		t.Fatal("the record is not in the file")
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	view(t, db, func(tx *Tx) error {
		table := tx.Projects()
		if _, err := table.Get("proj_1"); err != nil {
			t.Errorf("the whole record gives %v", err)
		}
		_, getErr := table.Get("proj_2")
		_, findErr := table.Find(ByName, Key("org_1", damaged.Name))
		_, _, newestErr := table.Newest(ByOrganization, Key("org_1"), "", 10)
		allErr := table.All(func(model.Project) error { return nil })
		for i, err := range []error{getErr, findErr, newestErr, allErr, check(db)} {
			if !isCorrupt(err) || !strings.Contains(err.Error(), "projects/proj_2") {
				t.Errorf("%d: got %v, want a CorruptError at projects/proj_2", i, err)
			}
		}
		return nil
	})
	if err := db.Update(func(tx *Tx) error { return tx.Projects().Delete("proj_2") }); !isCorrupt(err) {
		t.Errorf("Delete gives %v, want a CorruptError", err)
	}
}
