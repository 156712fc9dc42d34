package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryInterval = 20 * time.Second
	// quietAllocations is how many bytes are allocated at most in a quiet interval. An appliance with ten databases and
	// nothing to do allocates about 4 MiB in that time.
	quietAllocations = 20 << 20
	allocatedMetric  = "/gc/heap/allocs:bytes"
)

// ReturnMemory gives memory that is no longer in use back to the system after each interval in which little was
// allocated, until ctx ends. The runtime keeps a good part of what a backup or a burst of uploads took for hours, because
// it collects in proportion to the live heap and keeps that much ready. A collection then takes about 10 ms of one
// processor. With the heap goes what is mapped of the program file; see dropProgram.
func ReturnMemory(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for before := allocated(); ; {
		select {
		case <-ticker.C:
			before = returnIfQuiet(log, before)
		case <-ctx.Done():
			return
		}
	}
}

// returnIfQuiet returns memory if little was allocated since before. It returns what has been allocated.
func returnIfQuiet(log *slog.Logger, before uint64) uint64 {
	now := allocated()
	if now-before <= quietAllocations {
		debug.FreeOSMemory()
		if err := dropProgram(); err != nil {
			log.Debug("pages of the program file stay mapped", "error", err)
		}
	}
	return now
}

// allocated returns how many bytes the process has allocated since it began.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: allocatedMetric}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
