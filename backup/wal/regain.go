package wal

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"holdfast/internal/durable"
)

// Regain brings back what the archive has lost of the generations whose files a copy of it has: those that are missing, and what one of
// the same cluster was that had to be made anew, without its parent. Their WAL may be lost too, but it is known then what it led to. A
// file of the copy that is damaged is passed over.
func (a *Archive) Regain(stored []StoredFile) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	byNumber := func(x, y StoredFile) int { return cmp.Compare(x.Generation, y.Generation) } // a parent has a lower one
	for _, f := range slices.SortedFunc(slices.Values(stored), byNumber) {
		if f.Name != generationFile {
			continue
		}
		had, err := parseGeneration(f.Path(a.dir), f.Content)
		if errors.Is(err, ErrGap) {
			continue
		}
		if err == nil {
			err = a.regain(f.Generation, had)
		}
		if err != nil {
			return fmt.Errorf("bring back generation %d of the WAL archive: %w", f.Generation, err)
		}
	}
	return nil
}

// regain brings back one generation. The caller holds mu.
func (a *Archive) regain(number int, had Generation) error {
	b := a.branches[number]
	if a.damaged[number] != nil || b != nil && !b.isAnewOf(had) {
		return nil
	}
	if p := had.Parent; p != nil && a.branches[p.Generation] == nil {
		return nil // nothing leads here
	}
	if b != nil {
		return a.record(b, func(i *Generation) {
			gaps := i.Gaps
			*i = had
			i.Gaps = slices.Concat(had.Gaps, gaps)
		})
	}
	b = newBranch(number, filepath.Join(a.dir, strconv.Itoa(number)), had)
	if err := durable.EnsureDir(a.fsys, b.dir); err != nil {
		return err
	}
	if err := had.publish(a.fsys, b.dir); err != nil {
		return err
	}
	a.branches[number] = b
	a.published(b, generationFile)
	return nil
}

// isAnewOf reports whether a generation was created again, without its parent, after what it was before was lost.
func (b *branch) isAnewOf(had Generation) bool {
	now := b.info()
	sameCluster := now.System == 0 || now.System == had.System && now.SegmentSize == had.SegmentSize
	return now.Parent == nil && had.Parent != nil && sameCluster
}
