package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// The records of a session are described by one index, its home: the index with the session's number, until a merge
// moves the needed records to an index with a higher number. A crash may leave both; then the lower one is void, and
// so are the sessions that only it describes: they were garbage.

// locate ensures that the home of a session is known and open.
func (r *Repository) locate(session uint32) error {
	r.mu.RLock()
	_, known := r.homes[session]
	r.mu.RUnlock()
	if known {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.homes[session]; known {
		return nil
	}
	unreadable := r.survey()
	if _, known := r.homes[session]; known {
		return nil // even if other indexes are damaged
	}
	if len(unreadable) == 0 {
		return damaged(indexName(session), "it is missing, and so is one that it was merged into, and a backup needs it")
	}
	return fmt.Errorf("find the records of session %d: %w", session, errors.Join(unreadable...))
}

// surveys is the maximum number of surveys while listed indexes disappear, which only a merge in another process
// causes.
const surveys = 10

// survey opens all indexes and finds the home of each session. It returns an error for each index that it cannot
// open. The caller holds r.mu.
func (r *Repository) survey() (unreadable []error) {
	for range surveys {
		numbers, err := r.indexed()
		if err != nil {
			return []error{err}
		}
		r.closeOthers(numbers)
		unreadable = nil
		for _, number := range numbers {
			if err := r.openIndex(number); err != nil {
				unreadable = append(unreadable, err)
			}
		}
		r.findHomes()
		if !errors.Is(errors.Join(unreadable...), fs.ErrNotExist) {
			break
		}
	}
	return unreadable
}

// findHomes finds the home of each session.
func (r *Repository) findHomes() {
	clear(r.homes)
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(r.indexes))) {
		sessions := r.indexes[number].sessions()
		if slices.ContainsFunc(sessions, func(session uint32) bool { return r.homes[session] != 0 }) {
			continue
		}
		for _, session := range sessions {
			r.homes[session] = number
		}
	}
}

// closeOthers closes the indexes that no longer exist.
func (r *Repository) closeOthers(numbers []uint32) {
	there := make(map[uint32]bool, len(numbers))
	for _, number := range numbers {
		there[number] = true
	}
	for number, x := range r.indexes {
		if !there[number] {
			x.close()
			delete(r.indexes, number)
		}
	}
}

// openIndex opens an index unless it is open. The caller holds r.mu.
func (r *Repository) openIndex(number uint32) error {
	if r.indexes[number] != nil {
		return nil
	}
	x, err := r.loadIndex(number)
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	r.indexes[number] = x
	return nil
}

// forgetIndex closes an index that was replaced or removed, so that the next reader opens the current one.
func (r *Repository) forgetIndex(number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.indexes[number]; x != nil {
		x.close()
		delete(r.indexes, number)
	}
	for session, home := range r.homes {
		if home == number {
			delete(r.homes, session)
		}
	}
}

// opened returns all indexes, ordered by number, and an error for each index that it cannot open. The caller holds
// r.removal.
func (r *Repository) opened() (all []*index, unreadable []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	unreadable = r.survey()
	for _, number := range slices.Sorted(maps.Keys(r.indexes)) {
		all = append(all, r.indexes[number])
	}
	return all, unreadable
}

// homeOf returns the home of a located session. The caller holds r.removal.
func (r *Repository) homeOf(session uint32) *index {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.indexes[r.homes[session]]
}

// isMerged reports whether an index was merged into another and is therefore void.
func (r *Repository) isMerged(x *index) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.homes[x.spans[0].session] != x.number
}
