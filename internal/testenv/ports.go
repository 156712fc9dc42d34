package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports returns count ports which no other caller gets, in this process or another, before the test ends: a server that
// the test stops and starts again finds its port free. They lie below the ephemeral ports (from 32768 on) and below those
// of private appliances.
func Ports(t testing.TB, count int) (first, last int) {
	t.Helper()
	blocks := (count + portBlock - 1) / portBlock
	start := rand.IntN(portBlocks)
	for n := range portBlocks {
		lowest := lowestPort + (start+n)%portBlocks*portBlock
		if lowest+blocks*portBlock <= highestPort && reserve(t, lowest, blocks) {
			return lowest, lowest + count - 1
		}
	}
	t.Fatalf("other tests have all blocks of %d ports from %d to %d", count, lowestPort, highestPort)
	return 0, 0
}

// Ports come in blocks of portBlock.
const (
	lowestPort, highestPort = 10_000, 20_000
	portBlock               = 50
	portBlocks              = (highestPort - lowestPort) / portBlock
)

// reserve takes consecutive blocks until the test ends, and reports whether all were free. A block is taken while
// something has its first port by UDP, which also a process that is killed releases, or any of them by TCP, such as a
// server that such a process has left.
func reserve(t testing.TB, lowest, blocks int) bool {
	t.Helper()
	var taken []net.PacketConn
	release := func() {
		for _, l := range taken {
			l.Close()
		}
	}
	for n := range blocks {
		l, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", lowest+n*portBlock))
		if err != nil {
			release()
			return false
		}
		taken = append(taken, l)
	}
	for port := lowest; port < lowest+blocks*portBlock; port++ {
		if !isFree(port) {
			release()
			return false
		}
	}
	t.Cleanup(release)
	return true
}

// isFree reports whether no server has a port at any address.
func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	return err == nil && l.Close() == nil
}
