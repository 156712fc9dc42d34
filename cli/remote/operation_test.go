package remote

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestInterruptedWait: a person who interrupts a wait learns that the operation goes on, and how to look at it and cancel it.
func TestInterruptedWait(t *testing.T) {
	const id = "op_01k6zv7r9pxa3c5n8m2q4t6w8y"
	op := map[string]any{"id": id, "type": "restore", "status": "running", "started_at": "2026-03-01T12:00:00Z"}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out strings.Builder
	_, err := runWithin(t, ctx, &out, map[string]any{"GET /v1/operations/" + id: op, "GET /v1/operations/" + id + "/events": streamed(":\n\n")}, "operation", "get", id, "--wait")
	if err == nil || !strings.Contains(out.String(), "holdfast operation get "+id+" --wait") || !strings.Contains(out.String(), "holdfast operation cancel "+id) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
