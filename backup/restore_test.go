package backup

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/backup/repository"
	"holdfast/engine/postgres/postgrestest"
)

// taken returns a backup b of a small cluster, in a repository for the test.
func taken(t testing.TB, scale int) (repo *repository.Repository, dir string, a *archive) {
	t.Helper()
	c := newCluster(t)
	if scale > 0 {
		c.pgbench(scale)
	}
	repo, dir = openRepository(t)
	a = newArchive(c)
	if _, err := Take(t.Context(), c.connect(), repo, a, Options{ID: "b", Label: "test"}); err != nil {
		t.Fatal(err)
	}
	return repo, dir, a
}

// mustBeAbsent checks that a failed Restore left nothing.
func mustBeAbsent(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the failed restore left %s (%v)", dir, err)
	}
}

// TestRestoreOfDamage damages one byte at a time, at many positions in the pack.
func TestRestoreOfDamage(t *testing.T) {
	repo, repoDir, _ := taken(t, 0)
	packs, err := filepath.Glob(filepath.Join(repoDir, "packs", "*"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs %v, %v", packs, err)
	}
	info, err := os.Stat(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		position := 16 + rand.Int64N(info.Size()-16)
		flip(t, packs[0], position)
		dir := filepath.Join(t.TempDir(), "r")
		err := restoreTo(t.Context(), repo, "b", dir)
		if !errors.Is(err, repository.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(packs[0])) {
			t.Errorf("byte %d flipped: %v", position, err)
		}
		mustBeAbsent(t, dir)
		flip(t, packs[0], position) // restore it
	}
	if err := restoreTo(t.Context(), repo, "b", filepath.Join(t.TempDir(), "r")); err != nil {
		t.Errorf("undamaged: %v", err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	repo, _, _ := taken(t, 0)
	other := t.TempDir()
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restoreTo(t.Context(), repo, "b", other); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a full directory: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("Restore removed what was there before")
	}
	if err := restoreTo(t.Context(), repo, "nobody", filepath.Join(other, "r")); !errors.Is(err, repository.ErrNotFound) {
		t.Errorf("a backup that is not there: %v", err)
	}
	// A path that escapes the directory.
	w, err := repo.Begin()
	if err != nil {
		t.Fatal(err)
	}
	m := &repository.Manifest{Backup: repository.Backup{ID: "hostile"}, Entries: []repository.Entry{{Path: "../../escaped", Mode: 0o600}}}
	if _, _, err := w.Commit(m); err != nil {
		t.Fatal(err)
	}
	if err := restoreTo(t.Context(), repo, "hostile", filepath.Join(t.TempDir(), "r")); !errors.Is(err, repository.ErrDamaged) {
		t.Errorf("a hostile path: %v", err)
	}
}

func TestRestoreCancelled(t *testing.T) {
	repo, _, _ := taken(t, 2)
	source, err := repo.Snapshot("b")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("changed my mind")
	dir := filepath.Join(t.TempDir(), "r")
	err = Restore(ctx, source, dir, RestoreOptions{Progress: func(done, total int64) { cancel(enough) }})
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	mustBeAbsent(t, dir)
}

// TestRestoreIntoEmpty keeps a directory that the caller created.
func TestRestoreIntoEmpty(t *testing.T) {
	repo, repoDir, a := taken(t, 0)
	packs, _ := filepath.Glob(filepath.Join(repoDir, "packs", "*"))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	flip(t, packs[0], 1000)
	if err := restoreTo(t.Context(), repo, "b", dir); err == nil {
		t.Fatal("restored")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the failed restore left %v, %v", left, err)
	}
	flip(t, packs[0], 1000)
	if err := restoreTo(t.Context(), repo, "b", dir); err != nil {
		t.Fatal(err)
	}
	mustBePrivate(t, dir)
	a.layWAL(dir)
	if got := startCluster(t, dir).query("select 1"); got != "1" {
		t.Errorf("answered %q", got)
	}
}

func mustBePrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTar unpacks a backup with tar: PostgreSQL runs on it.
func TestTar(t *testing.T) {
	repo, repoDir, a := taken(t, 1)
	source, err := repo.Snapshot("b")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tar := exec.Command("tar", "-x", "-C", dir)
	in, err := tar.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tar.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteTar(t.Context(), source, in, ""), in.Close(), tar.Wait()); err != nil {
		t.Fatal(err)
	}
	mustBePrivate(t, dir)
	a.layWAL(dir)
	postgrestest.Run(t, pgTool(t, "pg_verifybackup", dir))
	mustRun(t, dir)
	packs, _ := filepath.Glob(filepath.Join(repoDir, "packs", "*"))
	flip(t, packs[0], 1000)
	count := &counter{}
	if err := WriteTar(t.Context(), source, count, ""); !errors.Is(err, repository.ErrDamaged) {
		t.Errorf("of a damaged repository: %v", err)
	}
}

type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}
