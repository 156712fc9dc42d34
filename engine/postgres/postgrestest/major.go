package postgrestest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres/binaries"
)

// majorsVariable names the major versions that .ci/run has got for [Major]. A
// test that needs one of them must run.
const majorsVariable = "HOLDFAST_MAJORS"

// majorVariable chooses the version that [Binaries] returns.
const majorVariable = "HOLDFAST_TEST_MAJOR"

// Major returns PostgreSQL of a major version: the one that .ci/run keeps for all
// runs, with contrib and pg_dump, psql and (16 and 18) pg_upgrade and pgvector, or
// an installed one. Without it the test fails if .ci/run had got it, and otherwise
// is skipped.
func Major(tb testing.TB, major int) binaries.Set {
	tb.Helper()
	bin, err := findMajor(major)
	switch {
	case err == nil:
	case slices.Contains(strings.Fields(os.Getenv(majorsVariable)), strconv.Itoa(major)):
		tb.Fatalf("PostgreSQL %d was got by .ci/run and cannot be used: %v", major, err)
	default:
		tb.Skipf("NOT TESTED: this machine lacks PostgreSQL %d, which .ci/run gets: %v", major, err)
	}
	return bin
}

// OtherMajors returns the major versions that [Major] has besides that of
// [Binaries]. If HOLDFAST_TEST_MAJOR chooses one for all tests, there are none.
func OtherMajors(tb testing.TB) []int {
	tb.Helper()
	if os.Getenv(majorVariable) != "" {
		return nil
	}
	own := Binaries(tb).Major
	return slices.DeleteFunc([]int{16, 17, 18}, func(major int) bool { return major == own })
}

// Known returns the versions that this machine has for tests, that of [Binaries]
// first, one of each major.
func Known(tb testing.TB) []binaries.Set {
	tb.Helper()
	all := []binaries.Set{Binaries(tb)}
	for major := range foundMajors {
		if bin, err := foundMajors[major](); err == nil && major != all[0].Major {
			all = append(all, bin)
		}
	}
	return all
}

// foundMajors finds each major once for the process.
var foundMajors = map[int]func() (binaries.Set, error){
	16: sync.OnceValues(func() (binaries.Set, error) { return findMajor(16) }),
	17: sync.OnceValues(func() (binaries.Set, error) { return findMajor(17) }),
	18: sync.OnceValues(func() (binaries.Set, error) { return findMajor(18) }),
}

func findMajor(major int) (binaries.Set, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kept := binaries.Search{NoFetch: true, Installed: func() []string { return majorDirs(major) }}
	if bin, err := kept.FindMajor(ctx, major); err == nil {
		return bin, nil
	}
	return binaries.Search{NoFetch: true}.FindMajor(ctx, major)
}

// majorDirs returns the directories in which .ci/run keeps the programs of a major
// version, as root and as an ordinary user.
func majorDirs(major int) []string {
	dirs := []string{"/var/cache"}
	if cache, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, cache)
	}
	for n, dir := range dirs {
		dirs[n] = filepath.Join(dir, cacheName, "postgresql", strconv.Itoa(major), "bin")
	}
	return dirs
}
