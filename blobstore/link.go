package blobstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/internal/durable"
)

// Link copies the store to dir with hard links. dir must not exist and must be on the same file system. The copy has
// everything acknowledged, no part of the journal that may still change, and no unfinished blobs. The caller must
// ensure that nothing is removed meanwhile.
func (s *Store) Link(dir string) error {
	if err := s.link(dir); err != nil {
		return fmt.Errorf("link blob store: %w", err)
	}
	return nil
}

func (s *Store) link(dir string) error {
	if err := s.enter(context.Background()); err != nil {
		return err
	}
	defer s.life.RUnlock()
	numbers, err := s.journal.sealAll()
	if err != nil {
		return err
	}
	journal := filepath.Join(dir, filepath.Base(s.journal.dir))
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(journal, 0o700), os.Mkdir(filepath.Join(dir, filepath.Base(s.incoming)), 0o700)); err != nil {
		return err
	}
	for _, number := range numbers {
		if err := os.Link(s.journal.path(number), filepath.Join(journal, directoryName(number))); err != nil {
			return err
		}
	}
	for _, name := range []string{formatFile, filepath.Base(s.parts), filepath.Base(s.blobs)} {
		if err := durable.LinkTree(filepath.Join(filepath.Dir(s.blobs), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	// A list changes in place, so the copy gets one of its own.
	return s.away.copy(filepath.Join(dir, awayDirectory))
}
