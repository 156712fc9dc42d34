package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHandOverOnlyWhatIsEmpty races handOver against a user who may write in
// the parent directory and replaces the directory by a link to another.
func TestHandOverOnlyWhatIsEmpty(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives a directory away")
	}
	victim, parent := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(victim, "passwd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "data")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Symlink(victim, dir)
				_ = os.Remove(dir)
			}
		}
	}()
	for range 500 {
		_ = handOver(dir, account{name: "nobody", uid: 65534, gid: 65534}) // it may succeed or fail
		_ = os.Remove(dir)
	}
	close(stop)
	<-stopped
	if owner, _, err := ownerOf(victim); err != nil || owner.uid != 0 {
		t.Errorf("a directory with content was given away: %+v, %v", owner, err)
	}
}
