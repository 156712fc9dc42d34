package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Remove removes blobs. Those already gone are fine, so it may be retried; it
// goes on past one it cannot remove and returns all errors. The space comes
// back when the last Reader closes.
//
// The space of a blob in the journal comes back when its segment is dropped:
// removing one does nothing.
//
// A removal is not synced: after a power cut a removed blob may be there
// again, which Walk shows.
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

// PutAside moves a blob out of the store, to path on the same file system.
func (s *Store) PutAside(ref Ref, path string) error {
	if err := s.enter(context.Background()); err != nil {
		return fmt.Errorf("put a blob aside: %w", err)
	}
	defer s.life.RUnlock()
	from, err := ref.path(s.blobs)
	if err == nil {
		err = s.fs.Rename(from, path)
	}
	if err != nil {
		return fmt.Errorf("put a blob aside: %w", err)
	}
	return nil
}

func (s *Store) remove(ref Ref) error {
	if _, small := ref.position(); small {
		return nil
	}
	path, err := ref.path(s.blobs)
	if err != nil {
		return fmt.Errorf("remove blob: %w", err)
	}
	err = s.fs.Remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove blob: %w", err)
	}
	return nil
}
