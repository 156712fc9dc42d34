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
// file that is damaged, of the copy or beside the one that is missing, is passed over.
func (a *Archive) Regain(stored []StoredFile) error {
	byNumber := func(x, y StoredFile) int { return cmp.Compare(x.Generation, y.Generation) } // a parent has a lower one
	for _, f := range slices.SortedFunc(slices.Values(stored), byNumber) {
		if f.Name != generationFile {
			continue
		}
		had, err := parseGeneration(f.Path(a.dir), f.Content)
		if err == nil {
			err = a.regain(f.Generation, had)
		}
		if err != nil && !errors.Is(err, ErrGap) {
			return fmt.Errorf("bring back generation %d of the WAL archive: %w", f.Generation, err)
		}
	}
	return nil
}

// regain brings back one generation.
func (a *Archive) regain(number int, had Generation) error {
	files, err := a.findOrphaned(number, had)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.branches[number]
	if a.damaged[number] != nil || b != nil && !b.isAnewOf(had) || b == nil && files == nil {
		return nil
	}
	if p := had.Parent; p != nil && a.branches[p.Generation] == nil {
		return nil // nothing leads here
	}
	if b != nil {
		unread := b.info().System == 0 && files != nil // Writer.Identify reads the files only while the cluster is unknown
		err := a.record(b, func(i *Generation) {
			gaps := i.Gaps
			*i = had
			i.Gaps = slices.Concat(had.Gaps, gaps)
		})
		if err == nil && unread {
			b.segments, b.histories = files.segments, files.histories
		}
		return err
	}
	if err := durable.EnsureDir(a.fsys, files.dir); err != nil {
		return err
	}
	if err := had.publish(a.fsys, files.dir); err != nil {
		return err
	}
	a.branches[number] = files
	a.published(files, generationFile)
	return nil
}

// findOrphaned returns a generation that the archive lacks, or whose cluster it does not know, with the files that are left in its
// directory. It returns nil for another one.
func (a *Archive) findOrphaned(number int, had Generation) (*branch, error) {
	a.mu.Lock()
	b := a.branches[number]
	lacks := (b == nil || b.info().System == 0) && a.damaged[number] == nil
	a.mu.Unlock()
	if !lacks {
		return nil, nil
	}
	return a.orphaned(number, had)
}

// orphaned returns a generation whose file was lost, with the files that are left in its directory.
func (a *Archive) orphaned(number int, known Generation) (*branch, error) {
	b := newBranch(number, filepath.Join(a.dir, strconv.Itoa(number)), known)
	err := a.loadFiles(b, true) // the next Open removes what a crash has left
	if notExist(err) {
		return b, nil
	}
	if err == nil {
		err = a.resolveDuplicates(b)
	}
	for _, timeline := range b.timelines() {
		for _, s := range b.of(timeline) {
			if err == nil && !s.compressed {
				_, err = a.findEnd(b, s)
			}
		}
	}
	return b, err
}

// isAnewOf reports whether a generation was created again, without its parent, after what it was before was lost.
func (b *branch) isAnewOf(had Generation) bool {
	now := b.info()
	sameCluster := now.System == 0 || now.System == had.System && now.SegmentSize == had.SegmentSize
	return now.Parent == nil && had.Parent != nil && sameCluster
}
