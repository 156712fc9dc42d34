package databases

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// Majors finds the binaries of each major version. A data directory works only with
// binaries of its own major version.
type Majors struct {
	search    binaries.Search
	searching chan struct{}     // one slot, held during a search, which may be a download
	missed    map[int]time.Time // when a download last failed; guarded by searching
	looked    map[int]time.Time // when Newest last searched; guarded by searching
	found     sync.Map          // major version to binaries.Set
}

func newMajors(search binaries.Search, newest binaries.Set) *Majors {
	m := &Majors{search: search, searching: make(chan struct{}, 1), missed: map[int]time.Time{}, looked: map[int]time.Time{}}
	m.found.Store(newest.Major, newest)
	return m
}

// fetchRetry is how long after a failed download the version is searched for on
// this machine only, so that a hanging network does not delay one database after
// another.
const fetchRetry = time.Minute

// Find returns the binaries of a major version. If they are missing, the next call
// searches again: the operator may have installed them.
func (m *Majors) Find(ctx context.Context, major int) (binaries.Set, error) {
	if bin, ok := m.known(major); ok {
		return bin, nil
	}
	bin, err := m.searchFor(ctx, major)
	if err != nil {
		return bin, &model.Error{
			Code: model.CodeConflict,
			Message: fmt.Sprintf("this database needs PostgreSQL %d, which is not on this machine: "+
				"install it (on Debian the package postgresql-%d) and restart the database", major, major),
			Err: err,
		}
	}
	return bin, nil
}

// searchFor waits for a running search to end, then searches.
func (m *Majors) searchFor(ctx context.Context, major int) (binaries.Set, error) {
	select {
	case m.searching <- struct{}{}:
		defer func() { <-m.searching }()
	case <-ctx.Done():
		return binaries.Set{}, fmt.Errorf("wait for another search: %w", ctx.Err())
	}
	if bin, ok := m.known(major); ok {
		return bin, nil
	}
	search := m.search
	search.NoFetch = search.NoFetch || time.Since(m.missed[major]) < fetchRetry
	bin, err := search.FindMajor(ctx, major)
	if err != nil {
		if !search.NoFetch {
			m.missed[major] = time.Now()
		}
		return bin, err
	}
	m.found.Store(major, bin)
	return bin, nil
}

// known returns binaries that were already found. It does not wait for a search, so
// databases start while another major version is searched for.
func (m *Majors) known(major int) (binaries.Set, bool) {
	found, _ := m.found.Load(major)
	bin, ok := found.(binaries.Set)
	return bin, ok
}

// newestRetry is how often Newest searches for a minor version that was installed
// meanwhile.
const newestRetry = time.Minute

// Newest returns the binaries of a major version that are on this machine now: the
// operator may have installed a newer minor version since they were found. A
// server that is started next runs on them.
func (m *Majors) Newest(ctx context.Context, major int) (binaries.Set, bool) {
	select {
	case m.searching <- struct{}{}:
		defer func() { <-m.searching }()
	case <-ctx.Done():
		return binaries.Set{}, false
	}
	if time.Since(m.looked[major]) < newestRetry {
		return m.known(major)
	}
	search := m.search
	search.NoFetch = true
	bin, err := search.FindMajor(ctx, major)
	if err != nil {
		return m.known(major)
	}
	m.looked[major] = time.Now()
	m.found.Store(major, bin)
	return bin, true
}
