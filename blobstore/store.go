package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"holdfast/internal/durable"
)

// Errors of a Store, besides those of the file system.
var (
	// ErrNotFound means that the blob does not exist.
	ErrNotFound = errors.New("blob not found")
	// ErrReadOnly means that a sync has failed. Blobs can be read and removed, but the store accepts nothing until
	// it is opened again. Do not retry.
	ErrReadOnly = errors.New("blob store is read-only")
	// ErrDamaged means that bytes on the disk differ from what was written.
	ErrDamaged = errors.New("damaged on the disk")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("blob store is closed")
)

// defaultInline is the size of the largest blob in the journal, in bytes.
const defaultInline = 64 << 10

// Options are the options of a Store. The zero value is valid.
type Options struct {
	// DirectorySize is the number of blobs in a directory; 0 means 4096.
	DirectorySize int
	// Inline is the size of the largest blob that Publish puts into the journal,
	// in bytes; 0 means 64 KiB.
	Inline int
	// SegmentSize is the approximate size of a segment of the journal, in bytes;
	// 0 means 64 MiB.
	SegmentSize int64
	// Deliver is called with the durable entries of the journal, in order and one call at a time, before the calls
	// that wrote them return. It must not call the store. It may be nil if nothing is published.
	Deliver func([]Entry)
	// Damaged is called by Open with an ErrDamaged for each record after After that was acknowledged and is damaged,
	// in order with Deliver. It may be nil.
	Damaged func(at Position, err error)
	// DamagedList is called by Open for each list of what is away that cannot be used, with the path to which it was moved. It
	// may be nil.
	DamagedList func(path string, err error)
	// After is the position of the last entry that the caller has made durable itself. Open delivers the later
	// entries.
	After Position
	// Fetch opens n bytes of the content of a file that is away, from an offset on. An error that it returns is a reason to
	// try later. It may be nil if nothing is away.
	Fetch func(ctx context.Context, a Away, from, n int64) (io.ReadCloser, error)
	// Room returns an error if this disk should not take a file of that size that is away. It is then read without a copy
	// here. nil means that there is always room.
	Room func(size int64) error
	// FetchWhole is the size of the largest file that is away and is fetched before it is read, in bytes; 0 means 8 MiB.
	// Of larger ones, only what is read is fetched.
	FetchWhole int64

	fs durable.FS // nil means the operating system's
}

// Store is a directory of blobs. It is safe for concurrent use. Only one process can have it open.
type Store struct {
	fs       durable.FS
	incoming string
	blobs    string
	parts    string
	inline   int
	lock     *durable.DirLock
	evicting sync.Mutex // held from the listing of files to their removal, and while the lists are removed
	layout   *layout
	journal  *journal
	away     *awayLists
	local    atomic.Int64 // see Local
	absent   absent
	fetches  *fetches
	verified *verified

	life   sync.RWMutex // held shared during disk changes, so that Close waits
	closed bool         // guarded by life

	broken atomic.Pointer[error] // the reason for being read-only
	tap    atomic.Pointer[Tap]   // nil while nobody follows the store
}

// Open opens the store in dir. It creates the directory, whose parent must exist, and an empty store if there is
// none, and removes the files of unfinished writers. It refuses, and leaves unchanged, a directory with other
// content, a store of a newer format and a store that is open elsewhere. The caller must close the Store.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{
		fs: opts.fs, incoming: filepath.Join(dir, "incoming"), blobs: filepath.Join(dir, "blobs"), parts: filepath.Join(dir, "parts"),
		verified: newVerified(),
	}
	if s.fs == nil {
		s.fs = durable.OS{}
	}
	opts = opts.orDefaults()
	s.fetches = &fetches{
		store: s, from: opts.Fetch, room: opts.Room, whole: opts.FetchWhole,
		slots: make(chan struct{}, fetchesAtOnce), flying: map[Ref]*fetch{}, keeping: map[Ref]bool{},
	}
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
	if o.Room == nil {
		o.Room = func(int64) error { return nil }
	}
	if o.FetchWhole <= 0 {
		o.FetchWhole = 8 << 20
	}
	if o.Deliver == nil {
		o.Deliver = func([]Entry) {}
	}
	if o.Damaged == nil {
		o.Damaged = func(Position, error) {}
	}
	if o.DamagedList == nil {
		o.DamagedList = func(string, error) {}
	}
	return o
}

// isDamage reports whether an error of reading means that bytes on the disk are damaged, or not given back by it.
func isDamage(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, syscall.EIO) }

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
	if s.away, err = openAwayLists(s.fs, filepath.Join(dir, awayDirectory), opts.DamagedList); err != nil {
		return err
	}
	s.journal, err = s.openJournal(filepath.Join(dir, "journal"), opts)
	return err
}

// prepare checks or writes the format, and creates the directories.
func (s *Store) prepare(dir string) error {
	err := checkFormat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = writeFormat(s.fs, dir)
	}
	if err != nil {
		return err
	}
	for _, path := range []string{s.incoming, s.blobs, s.parts, filepath.Join(dir, "journal"), filepath.Join(dir, awayDirectory)} {
		if err := durable.EnsureDir(s.fs, path); err != nil {
			return fmt.Errorf("make blob store directory: %w", err)
		}
	}
	return s.sweep()
}

// sweep removes the uncommitted files of an earlier process.
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

// Close waits for running commits and closes the store. Open Writers can no longer commit; Abort or the next Open
// removes their files. Readers stay valid. Close is idempotent.
func (s *Store) Close() error {
	s.fetches.close()
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.away != nil {
		err = s.away.close()
	}
	if s.journal != nil {
		s.journal.reads.forget()
		err = errors.Join(err, s.journal.seal())
	}
	if s.lock == nil {
		return err
	}
	return errors.Join(err, s.lock.Release())
}

// enter begins a change of the disk, for which Close waits. If it returns nil, the caller must end the change with
// s.life.RUnlock.
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

// syncFile syncs a file. A failure makes the store read-only, because the success of another sync would mean nothing.
// A full disk does not: it affects only the data that the caller has just written and then discards.
func (s *Store) syncFile(h durable.Handle) error { return s.sync(h, isFull) }

// sync syncs h and makes the store read-only if that fails, unless harmless reports true for the error.
func (s *Store) sync(h durable.Handle, harmless func(error) bool) error {
	if err := s.writable(); err != nil {
		return err
	}
	err := h.Sync()
	if err != nil && !harmless(err) {
		s.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// syncDir makes the names in a directory durable. Any failure makes the store read-only, because the directory may
// hold names that other callers wrote.
func (s *Store) syncDir(path string) error {
	d, err := s.fs.OpenDir(path)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	defer d.Close()
	if err := s.sync(d, func(error) bool { return false }); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
	}
	return nil
}

// writable returns an ErrReadOnly if the store is read-only.
func (s *Store) writable() error {
	cause := s.broken.Load()
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w since a sync to disk failed (%v); check the disk, then start again", ErrReadOnly, *cause)
}
