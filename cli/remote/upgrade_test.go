package remote

import (
	"strings"
	"testing"
)

// TestConfirmUpgrade: the question names the replication slots that are dropped.
func TestConfirmUpgrade(t *testing.T) {
	const id = "db_01k6zv7r9pxa3c5n8m2q4t6w8y"
	_, _, err := runWith(t, map[string]any{
		"GET /v1/databases/" + id:                  map[string]any{"id": id, "name": "shop", "version": "15.20", "status": "available", "logical_replication": true},
		"GET /v1/databases/" + id + "/replication": map[string]any{"slots": []any{map[string]any{"name": "debezium"}, map[string]any{"name": "passing", "temporary": true}}},
	}, "db", "upgrade", id, "--to", "18")
	if err == nil || !strings.Contains(err.Error(), "drop its replication slots (debezium), whose clients") {
		t.Errorf("refused with %v", err)
	}
}
