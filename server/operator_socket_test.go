package server

import (
	"net"
	"path/filepath"
	"testing"
)

// TestOperatorSocketOfTheNext: an appliance that ends leaves the socket of the one that has taken its place.
func TestOperatorSocketOfTheNext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "operator.sock")
	first, err := listenOperator(path)
	if err != nil {
		t.Fatal(err)
	}
	next, err := listenOperator(path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
