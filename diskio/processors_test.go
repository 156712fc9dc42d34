package diskio

import (
	"runtime"
	"strconv"
	"testing"
)

func TestSpareProcessors(t *testing.T) {
	t.Cleanup(runtime.SetDefaultGOMAXPROCS)
	all := runtime.NumCPU()
	for _, c := range []struct {
		name           string
		environment    string
		begin          int
		want, computes int
	}{
		{"all of the machine", "", all, all + spareProcessors, all},
		{"a second time", "", all + spareProcessors, all + spareProcessors, all},
		{"set from outside", strconv.Itoa(all), all, all, all},
		{"not what the machine has", "", all + 1, all + 1, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", c.environment)
			runtime.GOMAXPROCS(c.begin)
			SpareProcessors()
			if got := runtime.GOMAXPROCS(0); got != c.want || Processors() != c.computes {
				t.Errorf("%d run at once and %d compute", got, Processors())
			}
		})
	}
}
