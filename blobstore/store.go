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

	"holdfast/internal/durable"
)

// What a Store's methods may answer besides the file system's own errors.
var (
	// ErrNotFound means that there is no such blob.
	ErrNotFound = errors.New("blob not found")
	// ErrReadOnly means that a sync failed earlier. Reading and removing go on;
	// nothing new is accepted until the store is opened again. Do not retry.
	ErrReadOnly = errors.New("blob store is read-only")
	// ErrDamaged means that bytes on the disk are not those that were written.
	ErrDamaged = errors.New("damaged on the disk")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("blob store is closed")
)

// defaultInline is the size of the largest blob in the journal, in bytes.
const defaultInline = 64 << 10

// Options of a Store. The zero value is right for use.
type Options struct {
	// DirectorySize is how many blobs go to one directory; 0 means 4096.
	DirectorySize int
	// Inline is the size of the largest blob that Publish puts into the journal,
	// in bytes; 0 means 64 KiB.
	Inline int
	// SegmentSize is about how large a segment of the journal grows, in bytes;
	// 0 means 64 MiB.
	SegmentSize int64
	// Deliver is called with what the journal has made durable, in its order,
	// one call at a time, before the calls that asked for it return. It must not
	// call the store. nil means that nothing is published.
	Deliver func([]Entry)
	// Damaged is called by Open, in the order of Deliver, for each record behind
	// After that was acknowledged and is not whole: what is said of it is an
	// ErrDamaged. nil is told nothing.
	Damaged func(at Position, err error)
	// After is the position of the last entry the caller has made durable by
	// itself: Open delivers what follows it.
	After Position

	fs durable.FS // nil means disk
}

// Store is a directory of blobs. Its methods may be called by many goroutines
// at once. One process may have it open at a time.
type Store struct {
	fs       durable.FS
	incoming string
	blobs    string
	parts    string
	inline   int
	lock     *durable.DirLock
	layout   *layout
	journal  *journal

	life   sync.RWMutex // read-held while something changes the disk; Close waits
	closed bool         // guarded by life

	broken atomic.Pointer[error] // why the store is read-only
}

// Open opens the store in dir, making the directory (its parent must exist) and
// an empty store where there is none. It removes what unfinished writers left
// behind. A directory with other content, a store of a newer format and a store
// open elsewhere are refused and left as they are. The caller closes the Store.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{fs: opts.fs, incoming: filepath.Join(dir, "incoming"), blobs: filepath.Join(dir, "blobs"), parts: filepath.Join(dir, "parts")}
	if s.fs == nil {
		s.fs = durable.OS{}
	}
	opts = opts.orDefaults()
	s.inline = opts.Inline
	if err := s.open(dir, opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (o Options) orDefaults() Options {
	if o.DirectorySize <= 0 {
		o.DirectorySize = 4096
	}
	if o.Inline <= 0 {
		o.Inline = defaultInline
	}
	if o.SegmentSize <= 0 {
		o.SegmentSize = 64 << 20
	}
	if o.Deliver == nil {
		o.Deliver = func([]Entry) {}
	}
	if o.Damaged == nil {
		o.Damaged = func(Position, error) {}
	}
	return o
}

func (s *Store) open(dir string, opts Options) (err error) {
	if err := durable.EnsureDir(s.fs, dir); err != nil {
		return fmt.Errorf("make blob store directory: %w", err)
	}
	if s.lock, err = durable.LockDir(dir); err != nil {
		return err
	}
	if err := s.prepare(dir); err != nil {
		return err
	}
	if s.layout, err = openLayout(s, opts.DirectorySize); err != nil {
		return err
	}
	s.journal, err = s.openJournal(filepath.Join(dir, "journal"), opts)
	return err
}

// prepare checks the format, or writes it, and makes the directories.
func (s *Store) prepare(dir string) error {
	err := checkFormat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = writeFormat(s.fs, dir)
	}
	if err != nil {
		return err
	}
	for _, path := range []string{s.incoming, s.blobs, s.parts, filepath.Join(dir, "journal")} {
		if err := durable.EnsureDir(s.fs, path); err != nil {
			return fmt.Errorf("make blob store directory: %w", err)
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
	var err error
	if s.journal != nil {
		s.journal.reads.forget()
		err = s.journal.seal()
	}
	if s.lock == nil {
		return err
	}
	return errors.Join(err, s.lock.Release())
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

// sync syncs a file or a directory. A failure makes the store read-only: another
// sync would succeed and mean nothing. A full disk only concerns what the caller
// has just written, which it gives up.
func (s *Store) sync(h durable.Handle) error {
	if err := s.writable(); err != nil {
		return err
	}
	err := h.Sync()
	if err != nil && !isFull(err) {
		s.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// syncDir makes the names in the directory path durable.
func (s *Store) syncDir(path string) error {
	d, err := s.fs.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	defer d.Close()
	if err := s.sync(d); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
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
