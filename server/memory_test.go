package server

import (
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestReturnMemory: memory that was in use stays with the process while it is busy, and goes back once it is quiet.
func TestReturnMemory(t *testing.T) {
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	begin, busy := allocated(), held()
	// More than quietAllocations by so much that what the runtime gives back by itself meanwhile changes no answer.
	sink = make([]byte, 4*quietAllocations)
	for i := range sink {
		sink[i] = 1
	}
	sink = nil
	after := returnIfQuiet(slog.Default(), begin)
	if got := held(); got < busy+3*quietAllocations {
		t.Fatalf("%d bytes of heap after an allocation, %d before it", got, busy)
	}
	if returnIfQuiet(slog.Default(), after); held() > busy+quietAllocations {
		t.Errorf("%d bytes of heap after a quiet interval, %d before the allocation", held(), busy)
	}
}

// sink keeps an allocation on the heap.
var sink []byte

// held returns how many bytes of memory the heap has from the system.
func held() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64() + samples[2].Value.Uint64()
}
