package databases

import (
	"testing"

	"holdfast/internal/testenv"
)

// Creations at once get different ports, and a port that is not used after all is chosen again.
func TestReservePort(t *testing.T) {
	r := openRoom(t)
	r.core.Config.FirstPort, r.core.Config.LastPort = testenv.Ports(t, 20)
	r.core.Config.Listen = []string{"127.0.0.1"}
	releases := map[int]func(){}
	first := 0
	for range 5 {
		port, release, err := r.reservePort()
		if err != nil {
			t.Fatal(err)
		}
		if releases[port] != nil {
			t.Fatalf("port %d was chosen twice", port)
		}
		releases[port] = release
		if first == 0 {
			first = port
		}
	}
	releases[first]()
	if port, _, err := r.reservePort(); err != nil || port != first {
		t.Errorf("%d, %v, want %d again", port, err, first)
	}
}

// If all free ports are reserved, a creation waits for one whose record is refused, and fails only if there is none.
func TestReserveLastPort(t *testing.T) {
	r := openRoom(t)
	free, _ := testenv.Ports(t, 1)
	r.core.Config.FirstPort, r.core.Config.LastPort, r.core.Config.Listen = free, free, []string{"127.0.0.1"}
	_, release, err := r.reservePort()
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		_, _, err := r.reservePort()
		waited <- err
	}()
	release()
	if err := <-waited; err != nil {
		t.Errorf("%v, want the port that was released", err)
	}
	delete(r.choosing.reserved, free)
	r.core.Config.LastPort = free - 1
	if _, _, err := r.reservePort(); err == nil {
		t.Error("a port of an empty range")
	}
}
