package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryInterval = time.Minute
	// quietAllocations is how many bytes are allocated at most in a quiet interval. An appliance with ten databases and
	// nothing to do allocates about 10 MiB in a minute.
	quietAllocations = 64 << 20
	allocatedMetric  = "/gc/heap/allocs:bytes"
)

// ReturnMemory gives memory that is no longer in use back to the system after each minute in which little was
// allocated, until ctx ends. The runtime keeps a good part of what a backup or a burst of uploads took for hours, because
// it collects in proportion to the live heap and keeps that much ready. A collection then costs no more than the one
// that the runtime makes every two minutes.
func ReturnMemory(ctx context.Context) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for before := allocated(); ; {
		select {
		case <-ticker.C:
			before = returnIfQuiet(before)
		case <-ctx.Done():
			return
		}
	}
}

// returnIfQuiet returns memory if little was allocated since before. It returns what has been allocated.
func returnIfQuiet(before uint64) uint64 {
	now := allocated()
	if now-before <= quietAllocations {
		debug.FreeOSMemory()
	}
	return now
}

// allocated returns how many bytes the process has allocated since it began.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: allocatedMetric}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
