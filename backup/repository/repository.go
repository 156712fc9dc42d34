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
	"time"

	"holdfast/internal/durable"
)

// Repository is a directory of backups. It is safe for concurrent use.
type Repository struct {
	dir  string
	fs   durable.FS
	lock *durable.DirLock // nil if opened for reading

	// removal is held shared by every Writer, and exclusively during any removal, so that no Writer refers to a
	// chunk that disappears.
	removal sync.RWMutex

	mu       sync.RWMutex
	failed   error              // set by the first failed sync
	indexes  map[uint32]*index  // open indexes, by number
	homes    map[uint32]uint32  // the number of the index that describes a session, by session
	pins     map[*Snapshot]bool // open snapshots
	sessions uint32             // the highest session number in use
	bad      map[Ref]bool       // records known to be damaged
	badIndex bool               // an index was found damaged or missing
	verified bool               // everything was read since damage was last found

	many int              // manySmall, except in tests
	now  func() time.Time // time.Now, except in tests
}

// The repository's directories.
const (
	packDir     = "packs"
	indexDir    = "index"
	manifestDir = "manifests"
)

func packName(index, number uint32) string {
	return filepath.Join(packDir, fmt.Sprintf("%08x-%06x.pack", index, number))
}

func indexName(number uint32) string {
	return filepath.Join(indexDir, fmt.Sprintf("%08x.index", number))
}

// ManifestName returns the name of the manifest of a backup within the repository.
func ManifestName(id string) string { return filepath.Join(manifestDir, id+".manifest") }

func (r *Repository) path(name string) string { return filepath.Join(r.dir, name) }

// Open opens the repository in dir, creating it if necessary; the parent of dir must exist. No other process can
// Open it until Close; any process may OpenForReading.
func Open(dir string) (*Repository, error) { return open(dir, durable.OS{}) }

func open(dir string, fsys durable.FS) (*Repository, error) {
	r := newRepository(dir, fsys)
	if err := r.prepare(); err != nil {
		if r.lock != nil {
			err = errors.Join(err, r.lock.Release())
		}
		return nil, fmt.Errorf("open backup repository: %w", err)
	}
	return r, nil
}

// OpenForReading opens a repository read-only, even while another process writes to it.
func OpenForReading(dir string) (*Repository, error) {
	r := newRepository(dir, durable.OS{})
	r.failed = ErrReadOnly
	if _, err := os.Stat(r.path(manifestDir)); err != nil {
		return nil, fmt.Errorf("open backup repository: %w", err)
	}
	return r, nil
}

func newRepository(dir string, fsys durable.FS) *Repository {
	return &Repository{dir: dir, fs: fsys, indexes: map[uint32]*index{}, homes: map[uint32]uint32{}, pins: map[*Snapshot]bool{}, bad: map[Ref]bool{}, many: manySmall, now: time.Now}
}

func (r *Repository) prepare() error {
	if err := r.noteSync(durable.EnsureDir(r.fs, r.dir)); err != nil {
		return err
	}
	var err error
	if r.lock, err = durable.LockDir(r.dir); err != nil {
		return err
	}
	for _, name := range []string{packDir, indexDir, manifestDir} {
		if err := r.noteSync(durable.EnsureDir(r.fs, r.path(name))); err != nil {
			return err
		}
	}
	return r.findSessions()
}

// findSessions finds the highest number in use, including interrupted sessions. noteSessions adds those of lost files.
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

// numberOf parses the index number in the name of a pack or an index.
func numberOf(name string) (uint32, bool) {
	if len(name) < 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(name[:8], 16, 32)
	return uint32(n), err == nil
}

// list returns the sorted names of the files in a directory of the repository.
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

// Backups returns the sorted ids of all backups.
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

// Orphaned reports whether there are packs or indexes but no backup. That is also the case during the first backup.
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

// Close closes the repository, which must not be in use. Close is idempotent.
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

// writable returns an error if the repository accepts no writes.
func (r *Repository) writable() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.failed
}

// create creates a file, replacing one left by an interrupted attempt.
func (r *Repository) create(path string) (durable.File, error) {
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

// remove removes a file that may no longer exist.
func (r *Repository) remove(path string) error {
	if err := r.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove from backup repository: %w", err)
	}
	return nil
}

// lastDated is the highest number that the clock gives to a session, in the year 2105: there are others after it.
const lastDated = 1<<32 - 1<<24

// nextSession returns an unused number for a session and its index, or for a merged index. It is no lower than the time, in
// seconds: a repository whose files are lost does not give their names, below which a copy elsewhere may have them, to others.
func (r *Repository) nextSession() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = uint32(max(int64(r.sessions)+1, min(r.now().Unix(), lastDated)))
	return r.sessions
}

// noteSessions keeps new sessions from getting a number that a manifest names, even if its index and packs are all lost.
func (r *Repository) noteSessions(m *Manifest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range m.Entries {
		for _, run := range m.Entries[i].Chunks {
			r.sessions = max(r.sessions, run.Session)
		}
	}
}

// distrust records that a record is damaged. No new backup refers to it, so a backup that reads everything is
// complete again.
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

// noteIndex returns err, and if it is damage, records that an index is damaged or missing.
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

// Verified reports whether Verify has read everything since Open and since damage was last found, so that all damage
// is known. A reader that finds damage knows of only one record.
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
