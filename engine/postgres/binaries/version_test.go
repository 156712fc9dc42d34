package binaries_test

import (
	"slices"
	"testing"

	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		version, other string
		newer          bool
	}{
		{"15.18", "15.9", true},
		{"15.9", "15.18", false},
		{"15.18", "15.18", false},
		{"18.4", "15.18", false},
		{"18.0", "18beta1", false}, // a beta's data directory needs an upgrade
		{"", "15.18", false},
	} {
		if got := binaries.Newer(c.version, c.other); got != c.newer {
			t.Errorf("%q is newer than %q: %v", c.version, c.other, got)
		}
	}
}

// Every version that the machine has is listed with what it lacks, and those that can
// be fetched only where that is allowed.
func TestMajorsListed(t *testing.T) {
	full, server := postgrestest.Major(t, 18), postgrestest.Major(t, 17)
	search := binaries.Search{NoFetch: true, Installed: func() []string { return []string{server.Dir, full.Dir} }}
	all := search.Majors(t.Context())
	if len(all) != 2 || all[0].Major != 18 || all[1].Major != 17 || !all[0].Default || all[1].Default {
		t.Fatalf("found %+v", all)
	}
	if len(all[0].Lacks) != 0 || !slices.Equal(all[1].Lacks, []string{binaries.LackUpgrade}) {
		t.Errorf("18 lacks %q, 17 %q", all[0].Lacks, all[1].Lacks)
	}
	search.NoFetch, search.CacheDir = false, t.TempDir()
	all = search.Majors(t.Context())
	if len(all) != 4 || all[2].Major != 16 || !all[2].Fetch || all[0].Fetch || !all[0].Default {
		t.Errorf("with downloads: %+v", all)
	}
}
