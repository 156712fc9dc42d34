package model

import (
	"strings"
	"testing"
)

func TestIsHostName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"db": true, "db.example.com": true, "DB-1.Example.com": true, "my_db": true, "xn--bcher-kva.example": true, "1.example": true,
		strings.Repeat("a", 63) + ".example": true,
		"":                                   false, ".": false, "db.": false, ".db": false, "a..b": false, "-db": false, "db-.example": false, "bücher.example": false,
		"db example": false, "db:5432": false, "https://db": false, "a/b": false, "*.example.com": false, "user@db": false,
		"127.0.0.1": false, "127.0.0.256": false, "::1": false, "[::1]": false, "fe80::1%eth0": false,
		strings.Repeat("a", 64): false, strings.Repeat("a.", 127) + "a": false,
	} {
		if got := IsHostName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
