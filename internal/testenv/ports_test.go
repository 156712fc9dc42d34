package testenv

import (
	"fmt"
	"net"
	"testing"
)

// No port is given twice while the tests that have them run, and those of a test that has ended are given again.
func TestPorts(t *testing.T) {
	given := map[int]bool{}
	for _, count := range []int{1, portBlock - 1, portBlock, 3 * portBlock} {
		first, last := Ports(t, count)
		if last-first+1 != count {
			t.Errorf("%d to %d, want %d ports", first, last, count)
		}
		for port := first; port <= last; port++ {
			if given[port] {
				t.Errorf("port %d was given twice", port)
			}
			given[port] = true
			if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
				t.Errorf("one of %d ports is not free: %v", count, err)
			} else {
				l.Close()
			}
		}
	}
	for range 2 {
		t.Run("most of them", func(t *testing.T) { Ports(t, (highestPort-lowestPort)/20) })
	}
}
