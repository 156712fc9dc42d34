package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// Archive is the WAL of all generations of one database. It is safe for concurrent use.
type Archive struct {
	dir   string
	fsys  durable.FS
	log   *slog.Logger
	codec *codec
	lock  *durable.DirLock // nil when read-only

	mu       sync.Mutex
	branches map[int]*branch
	damaged  map[int]*generationError // excluded
	grown    chan struct{}            // closed and replaced when the end of a segment moves
	taps     map[*Tap]bool
	closed   bool
}

// Options are the options of Open.
type Options struct {
	Logger *slog.Logger // nil = none
	// ReadOnly changes nothing on disk. Another process may have the archive open for writing; WAL that it receives
	// after Open is not visible.
	ReadOnly bool

	FS durable.FS // nil = the operating system's; tests inject faults
}

// Open opens the archive in dir, creating it if necessary, and recovers from a crash: it removes unfinished files
// and duplicates. It excludes a generation whose own files are damaged and leaves
// it unchanged: readers that need it get an [ErrGap].
func Open(dir string, o Options) (*Archive, error) {
	a := &Archive{dir: dir, fsys: o.FS, log: o.Logger, branches: map[int]*branch{}, damaged: map[int]*generationError{}, grown: make(chan struct{}), taps: map[*Tap]bool{}}
	if a.fsys == nil {
		a.fsys = durable.OS{}
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if a.codec, err = sharedCodec(); err != nil {
		return nil, err
	}
	if err := a.open(o.ReadOnly); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Archive) open(readOnly bool) error {
	if !readOnly {
		if err := a.take(); err != nil {
			return err
		}
	}
	err := a.load(readOnly)
	if err != nil && a.lock != nil {
		err = errors.Join(err, a.lock.Release())
	}
	return err
}

// take creates the directory and locks it for this process.
func (a *Archive) take() error {
	if err := durable.EnsureDir(a.fsys, a.dir); err != nil {
		return fmt.Errorf("open WAL archive: %w", err)
	}
	var err error
	if a.lock, err = durable.LockDir(a.dir); err != nil {
		return fmt.Errorf("open WAL archive: %w", err)
	}
	return nil
}

// load reads the directory of every generation.
func (a *Archive) load(readOnly bool) error {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return fmt.Errorf("read WAL archive: %w", err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() || strconv.Itoa(number) != e.Name() {
			a.log.Warn("ignoring a file or directory that is not part of the WAL archive", "path", filepath.Join(a.dir, e.Name()))
			continue
		}
		b, err := a.loadBranch(number, readOnly)
		if damaged := new(generationError); errors.As(err, &damaged) {
			a.log.Error("a generation of the WAL archive is damaged: it is left unchanged, and nothing can be restored from it", "path", damaged.path, "err", damaged.err)
			a.damaged[number] = damaged
			continue
		}
		if err != nil {
			return err
		}
		if b != nil {
			a.branches[number] = b
		}
	}
	if readOnly {
		return a.scanPartials()
	}
	return a.recoverFiles()
}

// loadBranch reads a generation's directory. It returns nil if the directory lacks the generation file, because a
// crash interrupted Create.
func (a *Archive) loadBranch(number int, readOnly bool) (*branch, error) {
	dir := filepath.Join(a.dir, strconv.Itoa(number))
	known, err := readGeneration(dir)
	if notExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := newBranch(number, dir, known)
	return b, a.loadFiles(b, readOnly)
}

// loadFiles reads what the directory of a generation has beside the generation file.
func (a *Archive) loadFiles(b *branch, readOnly bool) error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return fmt.Errorf("read WAL archive: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), durable.NewSuffix) {
			if !readOnly {
				err = errors.Join(err, a.fsys.Remove(filepath.Join(b.dir, e.Name())))
			}
			continue
		}
		err = errors.Join(err, a.loadFile(b, e))
	}
	if !readOnly && err == nil {
		err = a.removeOrphanSummaries(b, entries)
	}
	if err != nil {
		return fmt.Errorf("read WAL archive: %w", err)
	}
	return nil
}

// removeOrphanSummaries removes summaries without a segment, which an
// interrupted Prune leaves.
func (a *Archive) removeOrphanSummaries(b *branch, entries []os.DirEntry) error {
	var errs []error
	for _, e := range entries {
		name, isSummary := strings.CutSuffix(e.Name(), summarySuffix)
		timeline, n, ok := xlog.ParseSegmentName(name, b.info().SegmentSize)
		if isSummary && ok && b.segments[segmentKey{timeline, n}] == nil {
			errs = append(errs, a.fsys.Remove(filepath.Join(b.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func (a *Archive) loadFile(b *branch, e os.DirEntry) error {
	if timeline, ok := xlog.ParseHistoryName(e.Name()); ok {
		text, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
		if err != nil {
			return err
		}
		if b.histories[timeline], err = xlog.ParseHistory(timeline, text); err != nil {
			return &generationError{filepath.Join(b.dir, e.Name()), err}
		}
		return nil
	}
	name, suffix, _ := strings.Cut(e.Name(), ".")
	timeline, n, ok := xlog.ParseSegmentName(name, b.info().SegmentSize)
	info, err := e.Info()
	if !ok || err != nil || suffix != partialSuffix[1:] && suffix != compressedSuffix[1:] {
		return err
	}
	key := segmentKey{timeline, n}
	s := &segment{segmentKey: key, compressed: suffix == compressedSuffix[1:], stored: info.Size(), end: b.start(key)}
	if s.compressed {
		s.end = b.limit(key)
	}
	if other := b.segments[key]; other != nil && other.compressed {
		return nil // resolveDuplicates decides which one is valid
	}
	b.segments[key] = s
	return nil
}

// Close releases the archive, and ends its taps. Its writers must be closed.
func (a *Archive) Close() error {
	a.endTaps()
	if a.lock == nil {
		return nil
	}
	lock := a.lock
	a.lock = nil
	if err := lock.Release(); err != nil {
		return fmt.Errorf("close WAL archive: %w", err)
	}
	return nil
}

func (a *Archive) endTaps() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for t := range a.taps {
		t.end()
	}
	clear(a.taps)
}

// Create creates a generation durably. parent is nil if it did not fork from a generation of this archive. Create is
// idempotent for the same parent.
func (a *Archive) Create(number int, parent *Parent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b := a.branches[number]; b != nil {
		if !sameParent(b.info().Parent, parent) {
			return fmt.Errorf("generation %d of the WAL archive has another parent", number)
		}
		return nil
	}
	if damaged := a.damaged[number]; damaged != nil {
		return damaged
	}
	if number < 0 {
		return fmt.Errorf("%d is not a valid generation of a WAL archive", number)
	}
	if parent != nil {
		if _, err := a.branch(parent.Generation); err != nil {
			return fmt.Errorf("parent of generation %d: %w", number, err)
		}
	}
	b := newBranch(number, filepath.Join(a.dir, strconv.Itoa(number)), Generation{Parent: parent})
	if err := durable.EnsureDir(a.fsys, b.dir); err != nil {
		return fmt.Errorf("create generation %d of the WAL archive: %w", number, err)
	}
	if err := b.info().publish(a.fsys, b.dir); err != nil {
		return err
	}
	a.branches[number] = b
	a.published(b, generationFile)
	return nil
}

func sameParent(a, b *Parent) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// Generation returns the metadata of a generation. It returns an error if the generation does not exist, and an
// [ErrGap] if it is excluded.
func (a *Archive) Generation(number int) (Generation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.branch(number)
	if err != nil {
		return Generation{}, err
	}
	return *b.info(), nil
}

// Generations returns the metadata of every generation that is not excluded, by number.
func (a *Archive) Generations() map[int]Generation {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[int]Generation{}
	for number, b := range a.branches {
		all[number] = *b.info()
	}
	return all
}

func (a *Archive) branch(number int) (*branch, error) {
	if b := a.branches[number]; b != nil {
		return b, nil
	}
	if damaged := a.damaged[number]; damaged != nil {
		return nil, damaged
	}
	return nil, fmt.Errorf("the WAL archive has no generation %d", number)
}
