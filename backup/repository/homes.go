package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// A session's records are described by one index, its home: the file that has
// its number, until a merge moves all that is needed of it to another, of a
// higher number. A crash may leave both; the lower one does not count then, nor
// do sessions that it alone has: they were garbage.

// locate sees to it that the home of a session is known and open.
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
		return nil // whatever others are damaged
	}
	if len(unreadable) == 0 {
		return damaged(indexName(session), "it is missing, and so is one that it was merged into, and a backup needs it")
	}
	return fmt.Errorf("find the records of session %d: %w", session, errors.Join(unreadable...))
}

// surveys is how often a survey begins anew because an index was gone that had
// just been listed, which only a merge in another process does.
const surveys = 10

// survey opens all indexes and finds out which are homes of what. It returns
// an error for each that could not be opened. The caller holds r.mu.
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
		r.settleHomes()
		if !errors.Is(errors.Join(unreadable...), fs.ErrNotExist) {
			break
		}
	}
	return unreadable
}

// settleHomes finds the home of each session.
func (r *Repository) settleHomes() {
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

// closeOthers closes the indexes that are not there any more.
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

// forgetIndex has an index opened anew when it is next needed, because there is
// another or none.
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

// opened returns all indexes, in the order of their numbers, to those who hold
// r.work, and an error for each that cannot be opened.
func (r *Repository) opened() (all []*index, unreadable []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	unreadable = r.survey()
	for _, number := range slices.Sorted(maps.Keys(r.indexes)) {
		all = append(all, r.indexes[number])
	}
	return all, unreadable
}

// homeOf returns the home of a session that was located, to those who hold
// r.work.
func (r *Repository) homeOf(session uint32) *index {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.indexes[r.homes[session]]
}

// isMerged reports whether an index does not count any more.
func (r *Repository) isMerged(x *index) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.homes[x.spans[0].session] != x.number
}
