package engine

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/internal/durable"
)

// TestOpenIsExclusive: no recovery and no import works on the directory of an appliance that is open.
func TestOpenIsExclusive(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, recovery := offsite.Recover(t.Context(), offsite.RecoverOptions{DataDir: cfg.DataDir})
	_, move := ApplianceImport(cfg.DataDir, strings.NewReader(""))
	for what, err := range map[string]error{"a recovery": recovery, "an import": move} {
		if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "is in use") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(e.Close(t.Context()), e.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if e, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOpenDuringRecovery: while a recovery into a directory asks and waits, no appliance starts in it.
func TestOpenDuringRecovery(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	lock, err := durable.LockDir(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if e, err := Open(cfg); !errors.Is(err, meta.ErrLocked) {
		t.Errorf("Open: %v", err)
		if err == nil {
			_ = e.Close(t.Context())
		}
	}
	if left, err := os.ReadDir(cfg.DataDir); err != nil || len(left) > 0 {
		t.Errorf("it made %v, %v", left, err)
	}
}

// TestRecoverLooksAgain: a directory that is filled while a recovery asks and waits is refused, and keeps what it has.
func TestRecoverLooksAgain(t *testing.T) {
	t.Parallel()
	store := offsiteAt(t, "file://"+t.TempDir())
	a := startCopied(t, store)
	a.awaitOffsite(t, model.OffsiteCopying)
	keys, err := offsite.ParsePassphrases(offsitePassphrase)
	if err != nil {
		t.Fatal(err)
	}
	dir := newDataDir(t)
	put := dir + "/" + core.MetadataFile
	_, err = offsite.Recover(t.Context(), offsite.RecoverOptions{
		Location: offsite.Location{URL: store.URL, Keys: keys}, DataDir: dir, TakeOver: true, Progress: func(offsite.Progress) {},
		Confirm: func(offsite.Recoverable) error { return os.WriteFile(put, []byte("of another appliance"), 0o600) },
	})
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("recover: %v", err)
	}
	if content, err := os.ReadFile(put); string(content) != "of another appliance" {
		t.Errorf("what was put there is now %d bytes, %v", len(content), err)
	}
}

// TestFinishImport: an import is complete once the metadata are in place. What was cut off after that is finished by the
// next start, and nothing of it is removed by another import.
func TestFinishImport(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	arriving := cfg.DataDir + "/" + importDir
	again := func() {
		t.Helper()
		if _, err := ApplianceImport(cfg.DataDir, io.MultiReader()); model.CodeOf(err) != model.CodeConflict {
			t.Errorf("another import: %v", err)
		}
		for _, name := range []string{core.MetadataFile, core.KeyFile} {
			if core.Absent(cfg.DataDir, name) {
				t.Fatalf("%s is gone", name)
			}
		}
	}
	writeFile(t, arriving+"/secret", "another appliance's")
	again()
	if e, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "move those away") {
		t.Errorf("Open beside files of another import: %v", err)
		if err == nil {
			_ = e.Close(t.Context())
		}
	}
	if err := os.Remove(arriving + "/secret"); err != nil {
		t.Fatal(err)
	}
	again()
	if err := os.MkdirAll(arriving, 0o700); err != nil {
		t.Fatal(err)
	}
	if e, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !core.Absent(cfg.DataDir, importDir) {
		t.Error("the directory of the import is still there")
	}
}
