package wal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// Link copies the archive to dir with hard links, while WAL is being received. dir must not exist and must be on the
// same file system. The copy has each segment once, with everything confirmed so far; a partial segment continues to
// grow afterwards. The copy lacks what the archive lacks; a damaged generation is copied unchanged.
func (a *Archive) Link(dir string) error {
	if err := a.link(dir); err != nil {
		return fmt.Errorf("link WAL archive: %w", err)
	}
	return nil
}

// link holds mu, so that no segment file disappears: a partial file is removed only after its segment is marked as
// compressed.
func (a *Archive) link(dir string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for number, b := range a.branches {
		if err := b.link(filepath.Join(dir, strconv.Itoa(number))); err != nil {
			return err
		}
	}
	for number := range a.damaged {
		name := strconv.Itoa(number)
		if err := durable.LinkTree(filepath.Join(a.dir, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (b *branch) link(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.Link(filepath.Join(b.dir, generationFile), filepath.Join(dir, generationFile)); err != nil {
		return err
	}
	var names []string
	for timeline := range b.histories {
		names = append(names, xlog.HistoryName(timeline))
	}
	for key, s := range b.segments {
		if s.compressed {
			names = append(names, b.name(key)+compressedSuffix, b.name(key)+summarySuffix)
		} else {
			names = append(names, b.name(key)+partialSuffix)
		}
	}
	for _, name := range names {
		if err := os.Link(filepath.Join(b.dir, name), filepath.Join(dir, name)); err != nil && !notExist(err) {
			return err
		}
	}
	return nil
}
