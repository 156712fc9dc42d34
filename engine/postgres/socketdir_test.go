package postgres

import (
	"os"
	"sync"
	"testing"
)

// Servers that are about to start have no socket yet; their numbers must still
// differ.
func TestPrivatePortsDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	var callers sync.WaitGroup
	seen := map[int]bool{}
	for range 100 {
		callers.Go(func() {
			port, err := PrivatePort(dir)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || port < 1 || port > 1023 || seen[port] {
				t.Errorf("port %d, %v, known: %t", port, err, seen[port])
			}
			seen[port] = true
		})
	}
	callers.Wait()
}

func TestPrivatePortIsNoSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := func(port int) {
		if err := os.WriteFile(SocketPath(dir, port), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for port := 1; port < 1024; port += 2 {
		taken(port)
	}
	if port, err := PrivatePort(dir); err != nil || port%2 == 1 {
		t.Errorf("got %d, %v where the odd ones are taken", port, err)
	}
	for port := 2; port < 1024; port += 2 {
		taken(port)
	}
	if port, err := PrivatePort(dir); err == nil {
		t.Errorf("got %d of a full directory", port)
	}
}
