package postgrestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/engine/postgres"
)

// prepared makes a data directory as the product makes them, once for the
// process, below the run's temporary directory.
var prepared = sync.OnceValues(func() (string, error) {
	bin, err := binaries()
	if err != nil {
		return "", err
	}
	pool, err := postgres.NewWarmPool(postgres.WarmPoolOptions{Dir: filepath.Join(os.TempDir(), "prepared"), Bin: bin})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	dir := filepath.Join(os.TempDir(), "prepared", "data")
	return dir, pool.Take(ctx, dir)
})

// copyPrepared copies the prepared data directory to dest, which must not
// exist. All copies have the same system identifier.
func copyPrepared(tb testing.TB, dest string) {
	tb.Helper()
	from, err := prepared()
	if err != nil {
		tb.Fatalf("prepare data directory: %v", err)
	}
	if err := copyTree(from, dest); err != nil {
		tb.Fatalf("copy prepared data directory: %v", err)
	}
}

func copyTree(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
