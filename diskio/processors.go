package diskio

import (
	"os"
	"runtime"
)

// spareProcessors are for the two who sync nearly all the time when much is
// written: the journal of the blob store and the metadata.
const spareProcessors = 2

// SpareProcessors has Go run more goroutines at once than there are processors.
// Who syncs a file waits in the kernel, but Go takes him for one who computes,
// and gives his place away only when it looks again: on two processors one of
// them would stand idle through most of a sync. Where GOMAXPROCS is in the
// environment, or a cgroup gives less than the machine has, it stays as it is: a
// quota that more use up at once has all of them stand still afterwards.
func SpareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == runtime.NumCPU() {
		runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors)
	}
}

// Processors is how many there are to compute with, the spare ones left out.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }
