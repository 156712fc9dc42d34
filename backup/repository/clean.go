package repository

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Clean removes the files that belong to nothing, which an interrupted backup
// or Collect left, and returns their names. It returns ErrBusy while a backup
// is being written.
func (r *Repository) Clean() ([]string, error) {
	if err := r.writable(); err != nil {
		return nil, err
	}
	if !r.work.TryLock() {
		return nil, ErrBusy
	}
	defer r.work.Unlock()
	return r.clean()
}

// clean is Clean for who holds r.work.
func (r *Repository) clean() ([]string, error) {
	wanted, err := r.wantedPacks()
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, dir := range []string{packDir, indexDir, manifestDir} {
		names, err := r.list(dir)
		if err != nil {
			return removed, err
		}
		for _, name := range names {
			name := filepath.Join(dir, name)
			if !strings.HasSuffix(name, newSuffix) && (dir != packDir || wanted[name]) {
				continue
			}
			if err := r.remove(r.path(name)); err != nil {
				return removed, err
			}
			removed = append(removed, name)
		}
	}
	return removed, nil
}

// wantedPacks returns the names of the packs that an index describes. Where an
// index cannot be read nothing may be removed: its packs may yet be saved.
func (r *Repository) wantedPacks() (map[string]bool, error) {
	sessions, err := r.indexed()
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, session := range sessions {
		if err := r.openedIndex(session); err != nil {
			return nil, fmt.Errorf("not knowing what belongs to what: %w", err)
		}
		for _, p := range r.indexOf(session).packs {
			wanted[packName(session, p.number)] = true
		}
	}
	return wanted, nil
}
