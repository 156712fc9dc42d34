package server

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"holdfast/internal/parallel"
)

func TestTuneRuntime(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { runtime.SetDefaultGOMAXPROCS(); debug.SetGCPercent(before) })
	all := runtime.NumCPU()
	for _, c := range []struct {
		name              string
		procs, gc         string // in the environment
		offsite           bool
		begin             int
		want, percent     int
		processorsCounted int
	}{
		{"all processors of the machine", "", "", false, all, all + spareProcessors, gcPercent, all},
		{"a second time", "", "", false, all + spareProcessors, all + spareProcessors, gcPercent, all},
		{"with a copy off-site", "", "", true, all, all + spareProcessors, gcPercentOffsite, all},
		{"set in the environment", strconv.Itoa(all), "150", false, all, all, 50, all},
		{"other than the machine has", "", "", false, all + 1, all + 1, gcPercent, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", c.procs)
			t.Setenv("GOGC", c.gc)
			runtime.GOMAXPROCS(c.begin)
			debug.SetGCPercent(50)
			TuneRuntime(c.offsite)
			percent := debug.SetGCPercent(100)
			if got := runtime.GOMAXPROCS(0); got != c.want || percent != c.percent || parallel.Processors() != c.processorsCounted {
				t.Errorf("GOMAXPROCS %d, GOGC %d, %d processors", got, percent, parallel.Processors())
			}
		})
	}
}
