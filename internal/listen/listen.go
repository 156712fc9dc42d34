// Package listen listens on TCP addresses that another process may be about to free.
package listen

import (
	"errors"
	"net"
	"syscall"
	"time"
)

const (
	// patience is how long an address may stay in use. A process that was killed while it started a child leaves its sockets to
	// the child until that is another program, which takes milliseconds, or longer on a busy machine.
	patience = time.Second
	retry    = 20 * time.Millisecond
)

// TCP listens on an address of the form host:port. The error wraps [syscall.EADDRINUSE] if another program keeps using it.
func TCP(address string) (net.Listener, error) {
	for began := time.Now(); ; time.Sleep(retry) {
		l, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) > patience {
			return l, err
		}
	}
}
