package remote

import (
	"strings"
	"testing"
)

// TestUpdateSleep: 0 means never, as for a branch, and the default.
func TestUpdateSleep(t *testing.T) {
	const id = "db_01k6zv7r9pxa3c5n8m2q4t6w8y"
	shop := map[string]any{"id": id, "name": "shop", "status": "available", "sleep_after_seconds": 600}
	for given, want := range map[string]string{"0": "null", "0s": "null", "never": "null", "default": "null", "10m": "600"} {
		data := map[string]any{"GET /v1/databases/" + id: shop, "PATCH /v1/databases/" + id: shop}
		_, bodies, err := runWith(t, data, "db", "update", id, "--sleep-after", given, "--yes")
		if got := strings.TrimSpace(bodies["PATCH /v1/databases/"+id]); err != nil || got != `{"sleep_after_seconds":`+want+`}` {
			t.Errorf("%s: sent %s, %v; want %s", given, got, err, want)
		}
	}
}
