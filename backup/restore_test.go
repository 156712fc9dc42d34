package backup

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/blobstore"
)

// taken is a backup of a small cluster, in a store of the test's own.
func taken(t testing.TB, scale int) (store *blobstore.Store, storeDir string, result Result) {
	t.Helper()
	c := newCluster(t)
	if scale > 0 {
		c.pgbench(scale)
	}
	store, storeDir = openStore(t)
	result, err := Take(t.Context(), c.replication(), store, Options{Label: "test"})
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	return store, storeDir, result
}

// mustBeAbsent checks that a failed Restore left nothing.
func mustBeAbsent(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the failed restore left %s (%v)", dir, err)
	}
}

// TestFlippedByte damages one byte at a time, all over archive and manifest.
func TestFlippedByte(t *testing.T) {
	store, storeDir, result := taken(t, 0)
	for what, ref := range map[string]blobstore.Ref{"archive": result.Archive, "manifest": result.Manifest} {
		path := blobPath(storeDir, ref)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		positions := []int64{0, 4, 6, info.Size() / 2, info.Size() - 2, info.Size() - 1}
		for range 6 {
			positions = append(positions, rand.Int64N(info.Size()))
		}
		for _, position := range positions {
			flip(t, path, position)
			dir := filepath.Join(t.TempDir(), "r")
			err := Restore(t.Context(), store, result, dir, RestoreOptions{})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), what+" in blob "+string(ref)) {
				t.Errorf("byte %d of the %s flipped: %v", position, what, err)
			}
			mustBeAbsent(t, dir)
			flip(t, path, position) // back
		}
	}
	if err := Restore(t.Context(), store, result, filepath.Join(t.TempDir(), "r"), RestoreOptions{}); err != nil {
		t.Errorf("undamaged: %v", err)
	}
}

func TestTruncatedAndExtended(t *testing.T) {
	store, storeDir, result := taken(t, 0)
	for what, ref := range map[string]blobstore.Ref{"archive": result.Archive, "manifest": result.Manifest} {
		path := blobPath(storeDir, ref)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range [][]byte{nil, whole[:1], whole[:len(whole)/2], whole[:len(whole)-1], append(whole[:len(whole):len(whole)], 0)} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "r")
			err := Restore(t.Context(), store, result, dir, RestoreOptions{})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s of %d bytes instead of %d: %v", what, len(content), len(whole), err)
			}
			mustBeAbsent(t, dir)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	store, _, result := taken(t, 0)
	other, err := os.MkdirTemp(t.TempDir(), "full")
	if err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), store, result, other, RestoreOptions{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a full directory: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("Restore removed what was there before")
	}
	for name, change := range map[string]func(*Result){
		"newer format":           func(r *Result) { r.Format++ },
		"other compression":      func(r *Result) { r.Compression = "lz4" },
		"no LSN":                 func(r *Result) { r.StopLSN = "" },
		"other LSN":              func(r *Result) { r.StopLSN = "F/0" },
		"missing blob":           func(r *Result) { r.Archive = "00000001-00000000000000000000000000000000" },
		"archive as manifest":    func(r *Result) { r.Manifest, r.ManifestBLAKE3 = r.Archive, r.ArchiveBLAKE3 },
		"manifest as archive":    func(r *Result) { r.Archive, r.ArchiveBLAKE3 = r.Manifest, r.ManifestBLAKE3 },
		"hostile blob":           func(r *Result) { r.Archive = "../../../etc/passwd" },
		"other archive's digest": func(r *Result) { r.ArchiveBLAKE3 = r.ManifestBLAKE3 },
	} {
		changed, dir := result, filepath.Join(t.TempDir(), "r")
		change(&changed)
		if err := Restore(t.Context(), store, changed, dir, RestoreOptions{}); err == nil {
			t.Errorf("%s: restored", name)
		}
		mustBeAbsent(t, dir)
	}
}

// TestRestoreOfAnother gives one backup the manifest of another.
func TestRestoreOfAnother(t *testing.T) {
	c := newCluster(t)
	store, _ := openStore(t)
	var results []Result
	for range 2 {
		result, err := Take(t.Context(), c.replication(), store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
		c.query("create table if not exists t as select generate_series(1, 1000)")
	}
	mixed := results[1]
	mixed.Archive, mixed.ArchiveBLAKE3 = results[0].Archive, results[0].ArchiveBLAKE3
	dir := filepath.Join(t.TempDir(), "r")
	err := Restore(t.Context(), store, mixed, dir, RestoreOptions{})
	if err == nil {
		t.Fatal("restored a mixture of two backups")
	}
	t.Log(err)
	mustBeAbsent(t, dir)
}

func TestRestoreCancelled(t *testing.T) {
	store, _, result := taken(t, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("changed my mind")
	dir := filepath.Join(t.TempDir(), "r")
	err := Restore(ctx, store, result, dir, RestoreOptions{Progress: func(done, total int64) { cancel(enough) }})
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	mustBeAbsent(t, dir)
}

// TestRestoreIntoEmpty keeps a directory that the caller made.
func TestRestoreIntoEmpty(t *testing.T) {
	store, _, result := taken(t, 0)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	broken := result
	broken.StopLSN = "F/0"
	if err := Restore(t.Context(), store, broken, dir, RestoreOptions{}); err == nil {
		t.Fatal("restored")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the failed restore left %v, %v", left, err)
	}
	if err := Restore(t.Context(), store, result, dir, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	mustBePrivate(t, dir)
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

// TestRestoreKilled kills a restoring process at different moments. Without a
// table pg_control is in the middle of the archive, followed by the WAL.
func TestRestoreKilled(t *testing.T) {
	store, storeDir, result := taken(t, 0)
	store.Close()
	for _, percent := range []int64{1, 40, 70, 90, 98} {
		dir := killedRestore(t, storeDir, result, percent)
		if _, err := os.Stat(filepath.Join(dir, controlFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("killed at %d %%, and there is a pg_control (%v)", percent, err)
		}
		if _, err := os.Stat(filepath.Join(dir, manifestFile)); err != nil {
			t.Errorf("killed at %d %%, and nothing was written: %v", percent, err)
		}
	}
	dir := killedRestore(t, storeDir, result, 100)
	run(t, pgTool(t, "pg_verifybackup", "-n", dir)) // it was just about to return
}

// killedRestore kills a restore that has unpacked so much.
func killedRestore(t *testing.T, storeDir string, result Result, percent int64) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "r")
	cmd := helper("restore", helperArgs{Store: storeDir, Source: result, Dir: dir, Stop: percent})
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatalf("the restoring process said %q, %v", line, err)
	}
	return dir
}
