package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// What a Store's methods may answer besides the file system's own errors.
var (
	// ErrNotFound means that there is no such blob.
	ErrNotFound = errors.New("blob not found")
	// ErrReadOnly means that a sync failed earlier. Reading and removing go on;
	// nothing new is accepted until the store is opened again. Do not retry.
	ErrReadOnly = errors.New("blob store is read-only")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("blob store is closed")
)

// Options of a Store. The zero value is right for use.
type Options struct {
	// DirectorySize is how many blobs go to one directory; 0 means 4096.
	DirectorySize int

	fs fileSystem // nil means disk
}

// Store is a directory of blobs. Its methods may be called by many goroutines
// at once. One process may have it open at a time.
type Store struct {
	fs       fileSystem
	incoming string
	blobs    string
	root     *os.File // holds the lock
	layout   *layout

	life   sync.RWMutex // read-held while something changes the disk; Close waits
	closed bool         // guarded by life

	broken atomic.Pointer[error] // why the store is read-only
}

// Open opens the store in dir, making the directory (its parent must exist) and
// an empty store where there is none. It removes what unfinished writers left
// behind. A directory with other content, a store of a newer format and a store
// open elsewhere are refused and left as they are. The caller closes the Store.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{fs: opts.fs, incoming: filepath.Join(dir, "incoming"), blobs: filepath.Join(dir, "blobs")}
	if s.fs == nil {
		s.fs = disk{}
	}
	if opts.DirectorySize <= 0 {
		opts.DirectorySize = 4096
	}
	if err := s.open(dir, opts.DirectorySize); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(dir string, directorySize int) (err error) {
	if err := ensureDir(s.fs, dir); err != nil {
		return err
	}
	if s.root, err = lock(dir); err != nil {
		return err
	}
	if err := s.prepare(dir); err != nil {
		return err
	}
	s.layout, err = openLayout(s.fs, s.blobs, directorySize, s.syncNames)
	return err
}

// prepare checks the format, or writes it, and makes the two directories.
func (s *Store) prepare(dir string) error {
	root, err := s.fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open blob store directory: %w", err)
	}
	defer root.Close()
	err = checkFormat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = writeFormat(s.fs, dir, root)
	}
	if err != nil {
		return err
	}
	for _, path := range []string{s.incoming, s.blobs} {
		if err := ensureDir(s.fs, path); err != nil {
			return err
		}
	}
	return s.sweep()
}

// sweep removes what writers had not committed when the last process ended.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.incoming)
	if err != nil {
		return fmt.Errorf("read unfinished blobs: %w", err)
	}
	for _, e := range entries {
		if err := s.fs.Remove(filepath.Join(s.incoming, e.Name())); err != nil {
			return fmt.Errorf("remove unfinished blob: %w", err)
		}
	}
	return nil
}

// Close waits for commits under way and closes the store. Writers still open
// can no longer commit; their files go at the next Open, or by their Abort.
// Readers stay valid. Closing twice is fine.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.layout != nil {
		s.layout.Close()
	}
	if s.root == nil {
		return nil
	}
	return s.root.Close()
}

// enter begins a change of the disk, which Close then waits for; leave by
// s.life.RUnlock when it returned nil.
func (s *Store) enter(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.life.RLock()
	if s.closed {
		s.life.RUnlock()
		return ErrClosed
	}
	return nil
}

// fail makes the store read-only because of err, and returns err.
func (s *Store) fail(err error) error {
	s.broken.CompareAndSwap(nil, &err)
	return err
}

// syncNames syncs a directory. Once a sync has failed none is tried again: it
// would succeed and mean nothing.
func (s *Store) syncNames(h handle) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := h.Sync(); err != nil {
		return s.fail(fmt.Errorf("sync blob directory: %w", err))
	}
	return nil
}

// writable returns nil, or the ErrReadOnly to answer.
func (s *Store) writable() error {
	cause := s.broken.Load()
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w since a sync to disk failed (%v); check the disk, then start again", ErrReadOnly, *cause)
}
