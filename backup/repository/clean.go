package repository

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"holdfast/internal/durable"
)

// Clean removes the files that an interrupted backup or Collect left, and returns their names. It returns ErrBusy
// while a backup is being written.
func (r *Repository) Clean() ([]string, error) {
	if err := r.writable(); err != nil {
		return nil, err
	}
	if !r.removal.TryLock() {
		return nil, ErrBusy
	}
	defer r.removal.Unlock()
	return r.clean()
}

// clean is Clean for a caller that holds r.removal.
func (r *Repository) clean() ([]string, error) {
	all, unreadable := r.opened()
	if err := errors.Join(unreadable...); err != nil { // their packs may still be recovered
		return nil, fmt.Errorf("cannot tell which packs are in use: %w", err)
	}
	removed, err := r.removeMerged(all)
	if err != nil {
		return removed, err
	}
	wanted := r.wantedPacks(all)
	checked := false
	for _, dir := range []string{packDir, indexDir, manifestDir} {
		names, err := r.list(dir)
		if err != nil {
			return removed, err
		}
		for _, name := range names {
			name := filepath.Join(dir, name)
			unfinished := strings.HasSuffix(name, durable.NewSuffix)
			if !unfinished && (dir != packDir || wanted[name]) {
				continue
			}
			if !unfinished && !checked {
				if err := r.checkNeeded(context.Background()); err != nil { // the pack may belong to an index that is missing
					return removed, fmt.Errorf("cannot tell which packs are in use: %w", err)
				}
				checked = true
			}
			if err := r.remove(r.path(name)); err != nil {
				return removed, err
			}
			removed = append(removed, name)
		}
	}
	return removed, nil
}

// removeMerged removes the indexes that were merged into others. The others are durable, because publishing an index
// syncs its name.
func (r *Repository) removeMerged(all []*index) (removed []string, err error) {
	for _, x := range all {
		if !r.isMerged(x) {
			continue
		}
		if err := r.remove(r.path(x.name)); err != nil {
			return removed, err
		}
		removed = append(removed, x.name)
	}
	if len(removed) == 0 {
		return nil, nil
	}
	return removed, r.syncDir(r.path(indexDir)) // before their packs are removed
}

// wantedPacks returns the names of the packs that an index describes.
func (r *Repository) wantedPacks(all []*index) map[string]bool {
	wanted := map[string]bool{}
	for _, x := range all {
		if r.isMerged(x) {
			continue
		}
		for _, p := range x.packs {
			wanted[packName(x.number, p.number)] = true
		}
	}
	return wanted
}
