package remote

import (
	"strings"
	"testing"
)

// TestPsqlRefused: psql does not connect to a database that does not run, because another program may have its port.
func TestPsqlRefused(t *testing.T) {
	t.Setenv("PATH", "") // without a psql, which would take the place of the test
	const id = "db_01k6zv7r9pxa3c5n8m2q4t6w8y"
	for _, test := range []struct {
		status, reason string
		want           string
	}{
		{"available", "", "there is no psql in PATH"},
		{"failed", "the data directory is gone", "shop is failed: the data directory is gone"},
		{"unavailable", "the data is elsewhere", "shop is unavailable: the data is elsewhere"},
		{"restoring", "", "shop is restoring; psql connects when it is available"},
	} {
		shop := map[string]any{"id": id, "name": "shop", "status": test.status}
		if test.reason != "" {
			shop["status_reason"] = test.reason
		}
		data := map[string]any{"GET /v1/databases/" + id: shop}
		if _, _, err := runWith(t, data, "db", "psql", id); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("one that is %s: %v", test.status, err)
		}
	}
}
