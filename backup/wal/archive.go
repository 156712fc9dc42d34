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
	"holdfast/dirlock"
	"holdfast/diskio"
)

// Archive is the WAL of one database: of all its incarnations. It is safe for
// use by several goroutines.
type Archive struct {
	dir   string
	fsys  fileSystem
	log   *slog.Logger
	codec *codec
	lock  *dirlock.Lock // nil when it is open to be read only

	footprint diskio.Footprint // what fsys changed, on top of what was there

	mu       sync.Mutex
	branches map[int]*branch
	damaged  map[int]*incarnationError // those that are left out
	grown    chan struct{}             // closed, and made anew, when an end moves
}

// Options of an Archive.
type Options struct {
	Logger *slog.Logger // nil = none
	// ReadOnly leaves everything as it is, also beside a process that writes.
	// What that process has received since is not seen.
	ReadOnly bool

	fsys fileSystem // tests' own
}

// Open opens the archive in dir, which it makes where there is none, and
// settles what a crash has left: files that were being written are removed,
// full segments compressed, segments that are there twice are there once. An
// incarnation of which nothing certain is known is left out, and as it is: what
// needs it is an [ErrGap].
func Open(dir string, o Options) (*Archive, error) {
	a := &Archive{dir: dir, fsys: o.fsys, log: o.Logger, branches: map[int]*branch{}, damaged: map[int]*incarnationError{}, grown: make(chan struct{})}
	if a.fsys == nil {
		a.fsys = disk{}
	}
	a.fsys = measured{a.fsys, &a.footprint}
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

// take makes the directory and locks it for this process.
func (a *Archive) take() error {
	if err := makeDir(a.fsys, a.dir); err != nil {
		return err
	}
	var err error
	if a.lock, err = dirlock.Take(a.dir); err != nil {
		return fmt.Errorf("open WAL archive: %w", err)
	}
	if err := a.footprint.Measure(a.dir); err != nil {
		return errors.Join(err, a.lock.Release())
	}
	return nil
}

// makeDir makes the directory path, where it is missing, and its name durable.
func makeDir(fsys fileSystem, path string) error {
	if err := fsys.Mkdir(path); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make WAL archive directory: %w", err)
	}
	// Also where it was there already: a crash may have come between the two.
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync WAL archive's parent: %w", err)
	}
	return nil
}

// load reads every incarnation's directory.
func (a *Archive) load(readOnly bool) error {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return fmt.Errorf("read WAL archive: %w", err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() || strconv.Itoa(number) != e.Name() {
			a.log.Warn("what lies in a WAL archive is not a part of it, and left alone", "path", filepath.Join(a.dir, e.Name()))
			continue
		}
		b, err := a.loadBranch(number, readOnly)
		if damaged := new(incarnationError); errors.As(err, &damaged) {
			a.log.Error("an incarnation of the WAL archive is damaged: it is left as it is, and nothing can be restored from it", "path", damaged.path, "err", damaged.err)
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
		return a.measureAll()
	}
	return a.settle()
}

// loadBranch reads an incarnation's directory; nil for one without its file,
// whose making a crash has ended.
func (a *Archive) loadBranch(number int, readOnly bool) (*branch, error) {
	dir := filepath.Join(a.dir, strconv.Itoa(number))
	known, err := readIncarnation(dir)
	if notExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := newBranch(number, dir, known)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read WAL archive: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), newSuffix) {
			if !readOnly {
				err = errors.Join(err, a.fsys.Remove(filepath.Join(dir, e.Name())))
			}
			continue
		}
		err = errors.Join(err, a.loadFile(b, e))
	}
	if !readOnly && err == nil {
		err = a.dropLoneSummaries(b, entries)
	}
	if err != nil {
		return nil, fmt.Errorf("read WAL archive: %w", err)
	}
	return b, nil
}

// dropLoneSummaries removes the summaries of segments that are gone, which a
// prune left that was cut short.
func (a *Archive) dropLoneSummaries(b *branch, entries []os.DirEntry) error {
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
			return &incarnationError{filepath.Join(b.dir, e.Name()), err}
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
		return nil // doubles settles which is right
	}
	b.segments[key] = s
	return nil
}

// Close releases the archive. Its writers must have been closed.
func (a *Archive) Close() error {
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

// Create makes an incarnation, durably; parent is nil for one that forked from
// nothing in this archive. Creating it again with the same parent is fine.
func (a *Archive) Create(number int, parent *Parent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b := a.branches[number]; b != nil {
		if !sameParent(b.info().Parent, parent) {
			return fmt.Errorf("incarnation %d of the WAL archive has another parent", number)
		}
		return nil
	}
	if damaged := a.damaged[number]; damaged != nil {
		return damaged
	}
	if number < 0 {
		return fmt.Errorf("a WAL archive has no incarnation %d", number)
	}
	if parent != nil {
		if _, err := a.branch(parent.Incarnation); err != nil {
			return fmt.Errorf("parent of incarnation %d: %w", number, err)
		}
	}
	b := newBranch(number, filepath.Join(a.dir, strconv.Itoa(number)), Incarnation{Parent: parent})
	if err := makeDir(a.fsys, b.dir); err != nil {
		return err
	}
	if err := b.info().publish(a.fsys, b.dir); err != nil {
		return err
	}
	a.branches[number] = b
	return nil
}

func sameParent(a, b *Parent) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// Incarnation returns what is known of an incarnation; an error when there is
// none, an [ErrGap] when it is left out.
func (a *Archive) Incarnation(number int) (Incarnation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.branch(number)
	if err != nil {
		return Incarnation{}, err
	}
	return *b.info(), nil
}

// Incarnations returns what is known of every incarnation, by its number, but
// for those that are left out.
func (a *Archive) Incarnations() map[int]Incarnation {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[int]Incarnation{}
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
	return nil, fmt.Errorf("the WAL archive has no incarnation %d", number)
}
