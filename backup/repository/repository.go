package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"holdfast/dirlock"
	"holdfast/diskio"
)

// Repository is a directory of backups. Its methods may be called by several
// goroutines at once.
type Repository struct {
	dir  string
	fs   fileSystem
	lock *dirlock.Lock // nil when opened for reading

	footprint *diskio.Footprint // what fs changed, on top of what was there

	// work is held, to read, by every Writer, and to write by what removes:
	// neither meets the other.
	work sync.RWMutex

	mu       sync.RWMutex
	failed   error              // set by the first failed sync
	indexes  map[uint32]*index  // those opened so far, by their numbers
	homes    map[uint32]uint32  // by session, the index that has its records
	pins     map[*Snapshot]bool // the open ones
	sessions uint32             // the last session given out
	bad      map[Ref]bool       // records found to be damaged
	badIndex bool               // an index was found to be, or to be missing
	verified bool               // everything was read since damage was last met

	many int // manySmall, but for tests
}

// The repository's folders, and what an unfinished file is called.
const (
	packDir     = "packs"
	indexDir    = "index"
	manifestDir = "manifests"
	newSuffix   = ".new"
)

func packName(index, number uint32) string {
	return filepath.Join(packDir, fmt.Sprintf("%08x-%06x.pack", index, number))
}

func indexName(number uint32) string {
	return filepath.Join(indexDir, fmt.Sprintf("%08x.index", number))
}

func manifestName(id string) string { return filepath.Join(manifestDir, id+".manifest") }

func (r *Repository) path(name string) string { return filepath.Join(r.dir, name) }

// Open opens the repository in dir, and makes it where there is none in a
// directory that exists. No other process can Open it until Close; any may
// OpenForReading.
func Open(dir string) (*Repository, error) { return open(dir, disk{}) }

func open(dir string, fsys fileSystem) (*Repository, error) {
	r := newRepository(dir, fsys)
	if err := r.prepare(); err != nil {
		if r.lock != nil {
			err = errors.Join(err, r.lock.Release())
		}
		return nil, fmt.Errorf("open backup repository: %w", err)
	}
	return r, nil
}

// OpenForReading opens a repository that another process may be writing to.
// Nothing in it can be changed through it.
func OpenForReading(dir string) (*Repository, error) {
	r := newRepository(dir, disk{})
	r.failed = ErrReadOnly
	if _, err := os.Stat(r.path(manifestDir)); err != nil {
		return nil, fmt.Errorf("open backup repository: %w", err)
	}
	return r, nil
}

func newRepository(dir string, fsys fileSystem) *Repository {
	footprint := &diskio.Footprint{}
	return &Repository{dir: dir, fs: measured{fsys, footprint}, footprint: footprint, indexes: map[uint32]*index{}, homes: map[uint32]uint32{}, pins: map[*Snapshot]bool{}, bad: map[Ref]bool{}, many: manySmall}
}

func (r *Repository) prepare() error {
	if err := r.ensureDir(r.dir); err != nil {
		return err
	}
	var err error
	if r.lock, err = dirlock.Take(r.dir); err != nil {
		return err
	}
	for _, name := range []string{packDir, indexDir, manifestDir} {
		if err := r.ensureDir(r.path(name)); err != nil {
			return err
		}
	}
	if err := r.footprint.Measure(r.dir); err != nil {
		return err
	}
	return r.findSessions()
}

// ensureDir makes a directory, where it is missing, and its name durable.
func (r *Repository) ensureDir(path string) error {
	if err := r.fs.Mkdir(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Also where it was there already: an earlier attempt may have ended
	// between making it and syncing its parent.
	return r.syncDir(filepath.Dir(path))
}

// findSessions learns which numbers were used, also by what was interrupted.
func (r *Repository) findSessions() error {
	for _, dir := range []string{packDir, indexDir} {
		names, err := r.list(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if number, ok := numberOf(name); ok {
				r.sessions = max(r.sessions, number)
			}
		}
	}
	return nil
}

// numberOf reads the index's number out of the name of a pack or an index.
func numberOf(name string) (uint32, bool) {
	if len(name) < 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(name[:8], 16, 32)
	return uint32(n), err == nil
}

// list returns the names of the files in one of the folders, sorted.
func (r *Repository) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(r.path(dir))
	if err != nil {
		return nil, fmt.Errorf("list backup repository: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Backups returns the ids of the backups there are, sorted.
func (r *Repository) Backups() ([]string, error) {
	names, err := r.list(manifestDir)
	if err != nil {
		return nil, err
	}
	ids := names[:0]
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".manifest"); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Orphaned reports whether there is what backups are made of, and no backup. So
// it is too while the first one is taken.
func (r *Repository) Orphaned() (bool, error) {
	ids, err := r.Backups()
	if err != nil || len(ids) > 0 {
		return false, err
	}
	packs, err := r.list(packDir)
	if err != nil {
		return false, err
	}
	indexes, err := r.list(indexDir)
	return len(packs)+len(indexes) > 0, err
}

// Close closes the repository. Nothing of it may be in use. Close twice is
// fine.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for number, x := range r.indexes {
		errs = append(errs, x.close())
		delete(r.indexes, number)
	}
	clear(r.homes)
	if r.lock != nil {
		errs = append(errs, r.lock.Release())
		r.lock = nil
	}
	if r.failed == nil {
		r.failed = errClosed
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("backup repository is closed")

// fail makes the repository read-only.
func (r *Repository) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
}

// writable returns why nothing can be written, if so.
func (r *Repository) writable() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.failed
}

// create makes a file, in place of one that an interrupted attempt left.
func (r *Repository) create(path string) (file, error) {
	if err := r.writable(); err != nil {
		return nil, err
	}
	f, err := r.fs.Create(path)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := r.fs.Remove(path); err != nil {
		return nil, err
	}
	return r.fs.Create(path)
}

// remove removes a file that may be gone already.
func (r *Repository) remove(path string) error {
	if err := r.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove from backup repository: %w", err)
	}
	return nil
}

// nextSession gives out a number that nothing was ever of: a session's, which
// is its index's too, or that of an index merged of others.
func (r *Repository) nextSession() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions++
	return r.sessions
}

// distrust notes that a record is damaged: no backup is built on it from now
// on, so that one that reads everything is whole again.
func (r *Repository) distrust(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.bad[ref] {
		r.bad[ref], r.verified = true, false
	}
}

func (r *Repository) distrusted(ref Ref) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bad[ref]
}

// noteIndex returns err, and notes that an index is damaged or missing when
// that is what it says.
func (r *Repository) noteIndex(err error) error {
	if errors.Is(err, ErrDamaged) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.badIndex {
			r.badIndex, r.verified = true, false
		}
	}
	return err
}

// Damaged reports whether damage was found since Open.
func (r *Repository) Damaged() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.bad) > 0 || r.badIndex
}

// Verified reports whether Verify has read everything since Open and since
// damage was last met, so that all there is of it is known. Who meets some knows
// of one record only.
func (r *Repository) Verified() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.verified
}

func (r *Repository) setVerified() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verified = true
}
