package binaries

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Available is a major version that this machine has or can fetch.
type Available struct {
	Set              // the one that databases of this major run on; of one to fetch Major, Version and Origin
	Fetch   bool     // it is downloaded when it is first needed
	Lacks   []string // of what else PostgreSQL consists of: LackDump, LackUpgrade, LackContrib
	Default bool     // new databases get it
}

// Parts of PostgreSQL that a major version may lack here.
const (
	LackDump    = "pg_dump"
	LackUpgrade = "pg_upgrade"
	LackContrib = "contrib"
)

// Majors lists the major versions that FindMajor finds or downloads, the newest
// first. It downloads nothing.
func (s Search) Majors(ctx context.Context) []Available {
	var all []Available
	for _, c := range s.Candidates(ctx) {
		if c.Err == nil && !has(all, c.Major) {
			all = append(all, Available{Set: c.Set, Lacks: s.lacks(ctx, c.Set), Default: len(all) == 0})
		}
	}
	for major, release := range releases() {
		if !has(all, major) && !s.NoFetch && s.CacheDir != "" {
			all = append(all, Available{
				Set:   Set{Major: major, Version: strings.TrimSuffix(string(release), ".0"), Origin: OriginDownloaded},
				Fetch: true, Lacks: s.lacksFetched(ctx, major), Default: len(all) == 0 && major == NewestRelease,
			})
		}
	}
	slices.SortFunc(all, func(a, b Available) int { return b.Major - a.Major })
	return all
}

func has(all []Available, major int) bool {
	return slices.ContainsFunc(all, func(a Available) bool { return a.Major == major })
}

func (s Search) lacks(ctx context.Context, bin Set) (lacks []string) {
	if _, err := s.ClientTool(ctx, "pg_dump", bin.Major, bin); err != nil {
		lacks = append(lacks, LackDump)
	}
	if len(bin.MissingForUpgrade(true)) > 0 {
		lacks = append(lacks, LackUpgrade)
	}
	if !bin.Has("pg_stat_statements") {
		lacks = append(lacks, LackContrib)
	}
	return lacks
}

// lacksFetched is lacks of a download, which has contrib and no client programs.
func (s Search) lacksFetched(ctx context.Context, major int) (lacks []string) {
	if _, err := s.ClientTool(ctx, "pg_dump", major, Set{}); err != nil {
		lacks = append(lacks, LackDump)
	}
	return append(lacks, LackUpgrade)
}

// MissingForUpgrade returns the programs that pg_upgrade needs of b, the new
// version or the old one, and that are not there.
func (b Set) MissingForUpgrade(target bool) (missing []string) {
	needed := []string{"postgres", "pg_controldata", "pg_resetwal", "pg_ctl"}
	if target {
		needed = append(needed, "initdb", "pg_upgrade", "pg_dump", "pg_dumpall", "pg_restore", "psql", "vacuumdb")
	}
	for _, name := range needed {
		if _, err := exec.LookPath(b.Tool(name)); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// Newer reports whether version is a newer minor version than other, of the same
// major version.
func Newer(version, other string) bool {
	var major, newMinor, otherMajor, oldMinor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &newMinor); n < 2 {
		return false
	}
	if n, _ := fmt.Sscanf(other, "%d.%d", &otherMajor, &oldMinor); n < 2 {
		return false
	}
	return major == otherMajor && newMinor > oldMinor
}

// Upgrades reports whether it has what an upgrade to it takes.
func (a Available) Upgrades() bool {
	return !a.Fetch && !slices.Contains(a.Lacks, LackUpgrade)
}
