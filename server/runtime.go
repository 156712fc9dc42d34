package server

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// spareProcessors are added to GOMAXPROCS for the journal and the metadata, which sync nearly all the time while
	// objects are uploaded.
	spareProcessors = 2
	// gcPercent is the growth of the heap between two collections. The live heap of an appliance is small, so that
	// with the default of 100 an upload of 1 KiB in 500 causes a collection.
	gcPercent = 200
	// gcPercentOffsite is gcPercent with a copy off-site. What that has in memory doubles the live heap, so that
	// collections are as rare as they are without it at 200, and the garbage between them takes no more memory.
	gcPercentOffsite = 100
)

// TuneRuntime adapts the Go runtime to a process that serves, unless GOMAXPROCS or GOGC in the environment do. A goroutine
// in a system call keeps its processor until the runtime takes it away, which on a machine with two processors leaves
// one idle through most of a sync. Where a control group limits the processors, GOMAXPROCS stays: using up a quota early
// suspends the whole process.
//
// Together they answer 1.11 to 1.22 times as many uploads of 1 KiB and of 64 KiB a second
// (docs/decisions/0010-tricks.md). offsite means that the appliance is copied off-site.
func TuneRuntime(offsite bool) {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == runtime.NumCPU() {
		runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors)
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	if offsite {
		debug.SetGCPercent(gcPercentOffsite)
	} else {
		debug.SetGCPercent(gcPercent)
	}
}
