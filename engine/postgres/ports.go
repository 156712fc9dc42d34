package postgres

import (
	"fmt"
	"net"
	"strconv"
)

// FreePort returns the lowest port from lo to hi that is not taken and can be
// bound now on every address in listen ("*" is every address). Another program
// may still bind the port before the caller does; the caller's bind then fails.
func FreePort(lo, hi int, listen []string, taken func(int) bool) (int, error) {
	var reason error
	for port := lo; port <= hi; port++ {
		if taken != nil && taken(port) {
			continue
		}
		if err := canBind(port, listen); err != nil {
			reason = err
			continue
		}
		return port, nil
	}
	if reason != nil {
		return 0, fmt.Errorf("no free port from %d to %d: %w", lo, hi, reason)
	}
	return 0, fmt.Errorf("no free port from %d to %d: all are in use by other databases", lo, hi)
}

// canBind binds the port on each address and releases it.
func canBind(port int, listen []string) error {
	for _, host := range listen {
		if host == "*" {
			host = ""
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		l.Close()
	}
	return nil
}
