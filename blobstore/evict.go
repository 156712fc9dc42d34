package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Evict takes files from this disk that can be fetched: it lists them durably as away, then removes them. It passes over
// files that are not here. What it has listed before an error stays listed, and can be evicted again.
func (s *Store) Evict(files []Away) error {
	if err := s.enter(context.Background()); err != nil {
		return fmt.Errorf("evict blobs: %w", err)
	}
	defer s.life.RUnlock()
	s.evicting.Lock()
	defer s.evicting.Unlock()
	if _, err := s.listAway(files, true); err != nil {
		return fmt.Errorf("evict blobs: %w", err)
	}
	var errs []error
	for _, a := range files {
		there, err := s.unlink(a.Ref)
		if there {
			s.absent.add(1, a.Size)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// List durably lists files as away that are neither here nor listed, as after damage to a list, and returns those. The caller
// knows that they can be fetched.
func (s *Store) List(files []Away) ([]Away, error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, fmt.Errorf("list blobs that are away: %w", err)
	}
	defer s.life.RUnlock()
	s.evicting.Lock()
	defer s.evicting.Unlock()
	fresh, err := s.listAway(files, false)
	if err != nil {
		return nil, fmt.Errorf("list blobs that are away: %w", err)
	}
	for _, a := range fresh {
		s.absent.add(1, a.Size)
	}
	return fresh, nil
}

// listAway lists the files that are here, or are not, and are not listed.
func (s *Store) listAway(files []Away, here bool) (fresh []Away, err error) {
	for _, a := range files {
		if err := a.valid(); err != nil {
			return nil, err
		}
		_, err := s.away.find(a.Ref)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err != nil && s.onDisk(a.Ref) == here {
			fresh = append(fresh, a)
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	return fresh, s.away.add(fresh)
}

// Unlist forgets that a file can be fetched, unless it is not on this disk or is known to be damaged.
func (s *Store) Unlist(ref Ref) error {
	s.evicting.Lock()
	defer s.evicting.Unlock()
	if !s.fetches.intact(ref) {
		return nil
	}
	_, err := s.away.remove(ref)
	return err
}

// unlink removes the file of a blob, and reports whether it was there.
func (s *Store) unlink(ref Ref) (there bool, err error) {
	path, err := ref.path(s.blobs)
	if err != nil {
		return false, fmt.Errorf("remove blob: %w", err)
	}
	info, statErr := os.Lstat(path)
	err = s.fs.Remove(path)
	if err == nil && statErr == nil {
		s.local.Add(-info.Size())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove blob: %w", err)
	}
	return err == nil, nil
}

// LocalFile is a file on this disk.
type LocalFile struct {
	Ref     Ref
	Size    int64 // of the content
	Written time.Time
	Used    time.Time // when it was written or last used, see Use
}

// WalkLocal is Walk with the times of the last use.
func (s *Store) WalkLocal(fn func(LocalFile) error) error {
	return s.walk(func(ref Ref, info fs.FileInfo) error {
		return fn(LocalFile{ref, contentSize(info.Size()), info.ModTime(), usedAt(info)})
	})
}

// Local returns the size of all files on this disk: what the last Walk counted, and what changed since.
func (s *Store) Local() int64 { return s.local.Load() }

// useGrain is how exact the time of the last use is.
const useGrain = 10 * time.Minute

// Use notes that a blob is used now, if it is a file on this disk.
func (s *Store) Use(ref Ref) {
	path, err := ref.path(s.blobs)
	if err != nil {
		return
	}
	if info, err := os.Lstat(path); err == nil && time.Since(usedAt(info)) > useGrain {
		_ = os.Chtimes(path, time.Now(), time.Time{}) // it only decides which file is evicted first
	}
}
