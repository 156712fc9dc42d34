package blobstore

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Remove removes blobs. It is idempotent, continues after a blob that it cannot remove, and returns all errors. The
// space of a file is free once its last Reader is closed. Removing a blob of the journal does nothing: its space is
// free once its segment is dropped.
//
// Remove does not sync: a removed blob may exist again after a power cut, and Walk reports it.
func (s *Store) Remove(refs ...Ref) error {
	if err := s.enter(context.Background()); err != nil {
		return fmt.Errorf("remove blobs: %w", err)
	}
	defer s.life.RUnlock()
	var errs []error
	for _, ref := range refs {
		errs = append(errs, s.remove(ref))
	}
	return errors.Join(errs...)
}

// Quarantine moves a blob that is a file out of the store, to path on the same file system.
func (s *Store) Quarantine(ref Ref, path string) error {
	if err := s.enter(context.Background()); err != nil {
		return fmt.Errorf("quarantine blob: %w", err)
	}
	defer s.life.RUnlock()
	from, err := ref.path(s.blobs)
	if err != nil {
		return fmt.Errorf("quarantine blob: %w", err)
	}
	info, statErr := os.Lstat(from)
	if err := s.fs.Rename(from, path); err != nil {
		return fmt.Errorf("quarantine blob: %w", err)
	}
	if statErr == nil {
		s.local.Add(-info.Size())
	}
	return nil
}

func (s *Store) remove(ref Ref) error {
	if _, small := ref.position(); small {
		return nil
	}
	t := s.tap.Load()
	if t != nil {
		t.removing(ref)
	}
	listed, err := s.away.remove(ref)
	s.fetches.remove(ref)
	there, unlinkErr := s.unlink(ref)
	if listed != nil && !there {
		s.absent.add(-1, -listed.Size)
	}
	if err := errors.Join(err, unlinkErr); err != nil {
		return err
	}
	if t != nil {
		t.removed(ref)
	}
	return nil
}
