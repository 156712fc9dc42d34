package postgrestest

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// preparedDirs has the prepared data directory of each version.
var preparedDirs sync.Map // version → func() (string, error)

// prepared creates a data directory as the product does, once for the process and
// version, below the run's temporary directory.
func prepared(bin binaries.Set) (string, error) {
	prepare, _ := preparedDirs.LoadOrStore(bin.Version, sync.OnceValues(func() (string, error) { return prepare(bin) }))
	return prepare.(func() (string, error))()
}

func prepare(bin binaries.Set) (string, error) {
	dir := filepath.Join(os.TempDir(), "prepared-"+bin.Version)
	pool, err := postgres.NewWarmPool(postgres.WarmPoolOptions{Dir: dir, Want: 1, Bin: bin, Log: slog.Default()})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	pool.Start()
	for deadline := time.Now().Add(startTimeout); pool.Ready() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return "", fmt.Errorf("no data directory was prepared within %s", startTimeout)
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "prepared-*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d data directories were prepared, %w", len(found), err)
	}
	return found[0], nil
}

// copyPrepared copies the prepared data directory to dest, which must not
// exist. All copies have the same system identifier.
func copyPrepared(tb testing.TB, bin binaries.Set, dest string) {
	tb.Helper()
	from, err := prepared(bin)
	if err != nil {
		tb.Fatalf("prepare data directory: %v", err)
	}
	if err := copyTree(from, dest, "-a"); err != nil {
		tb.Fatalf("copy prepared data directory: %v", err)
	}
}

// FillPool copies prepared data directories into dir until there are count. A
// warm pool over dir adopts them, which takes a hundredth of the time of building
// them. All have the same system identifier.
func FillPool(tb testing.TB, dir string, count int) {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	ready, err := filepath.Glob(filepath.Join(dir, "prepared-*"))
	if err != nil {
		tb.Fatal(err)
	}
	bin := Binaries(tb)
	for n := len(ready); n < count; n++ {
		from, err := prepared(bin)
		if err != nil {
			tb.Fatalf("prepare data directory: %v", err)
		}
		copyPrepared(tb, bin, filepath.Join(dir, filepath.Base(from)+strings.ToLower(rand.Text())))
	}
}

// LinkTemplate gives the warm pool over dir the template of bin, if it has none:
// hard links to the files of the one that the process has. A pool reads its template
// and never writes to it, so that it takes a copy where it would run initdb. Each
// copy has a system identifier of its own.
func LinkTemplate(tb testing.TB, bin binaries.Set, dir string) {
	tb.Helper()
	from, err := prepared(bin)
	if err != nil {
		tb.Fatalf("prepare data directory: %v", err)
	}
	templates, err := filepath.Glob(filepath.Join(filepath.Dir(from), "template-*"))
	if err != nil || len(templates) != 1 {
		tb.Fatalf("%d templates, %v", len(templates), err)
	}
	to := filepath.Join(dir, filepath.Base(templates[0]))
	if _, err := os.Lstat(to); err == nil {
		return
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := copyTree(templates[0], to, "-al"); err != nil {
		tb.Fatalf("link template of data directories: %v", err)
	}
}

// copyTree copies a directory tree with cp and a flag: "-a" copies, and "-al" makes hard links.
func copyTree(from, to, flag string) error {
	if out, err := exec.Command("cp", flag, from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
