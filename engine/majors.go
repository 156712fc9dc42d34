package engine

import (
	"context"
	"fmt"
	"sync"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// majors finds the binaries of each major version: a data directory can only
// be run by those of its own.
type majors struct {
	search  postgres.Search
	looking sync.Mutex // one search at a time: it may be a download

	mu    sync.Mutex
	found map[int]postgres.Binaries
}

func newMajors(search postgres.Search, newest postgres.Binaries) *majors {
	return &majors{search: search, found: map[int]postgres.Binaries{newest.Major: newest}}
}

// find returns the binaries of a major version. What is missing is looked for
// again the next time: the operator may have installed it.
func (m *majors) find(ctx context.Context, major int) (postgres.Binaries, error) {
	if bin, ok := m.known(major); ok {
		return bin, nil
	}
	m.looking.Lock()
	defer m.looking.Unlock()
	if bin, ok := m.known(major); ok {
		return bin, nil
	}
	bin, err := m.search.FindMajor(ctx, major)
	if err != nil {
		return bin, &model.Error{
			Code: model.CodeConflict,
			Message: fmt.Sprintf("this database needs PostgreSQL %d, which is not on this machine: "+
				"install it (on Debian the package postgresql-%d) and restart the database", major, major),
			Err: err,
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found[major] = bin
	return bin, nil
}

// known does not wait for a search: the databases whose binaries are there
// start while those of another major are looked for.
func (m *majors) known(major int) (postgres.Binaries, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bin, ok := m.found[major]
	return bin, ok
}
