package webhooks

import (
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestDialTriesOtherAddresses: an address that does not answer leaves time for the next one.
func TestDialTriesOtherAddresses(t *testing.T) {
	t.Parallel()
	answers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	port := answers.Addr().(*net.TCPAddr).Port
	fillBacklog(t, [4]byte{127, 0, 0, 2}, port)
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}
	began := time.Now()
	conn, err := destinations{private: true}.dialFirst(t.Context(), "tcp", addresses, strconv.Itoa(port))
	if err != nil {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if time.Since(began) < dialTimeout/2 {
		t.Error("the first address answered")
	}
}

// fillBacklog listens at an address where no further connection is answered.
func fillBacklog(t *testing.T, address [4]byte, port int) {
	t.Helper()
	at := &syscall.SockaddrInet4{Addr: address, Port: port}
	open := func() int {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
		return fd
	}
	listener := open()
	if err := syscall.Bind(listener, at); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(listener, 0); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := syscall.Connect(open(), at); err != nil && err != syscall.EINPROGRESS {
			t.Fatal(err)
		}
	}
}
