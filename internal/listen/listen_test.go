package listen

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// An address that is freed soon is waited for, another one is not.
func TestTCP(t *testing.T) {
	t.Parallel()
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := held.Addr().String()
	synctest.Test(t, func(t *testing.T) {
		if _, err := TCP(address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("an address that stays in use: %v", err)
		}
		time.AfterFunc(patience/2, func() { held.Close() })
		l, err := TCP(address)
		if err != nil {
			t.Fatalf("an address that is freed: %v", err)
		}
		l.Close()
	})
}
