package blobstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"holdfast/internal/durable"
)

// damagedList begins the name of a list that cannot be used.
const damagedList = "damaged-"

// awayLists are the lists of a store. Each addition is a new list, merged with those before it that are not much
// larger, so there are few, and a record is rewritten seldom. One with a record that cannot be read is not merged: only its place
// there tells which files it may name.
type awayLists struct {
	fs  durable.FS
	dir string

	changing sync.Mutex // held by those who change a list
	last     uint32     // the highest number that a list on the disk may have; guarded by changing
	aside    bool       // whether a list was set aside, now or earlier, so that what it had is not known

	mu    sync.RWMutex
	lists []*awayList // oldest first; the files of replaced ones stay open for those who read them
}

// openAwayLists opens the lists in dir. It removes what was merged and what was not finished. A list that cannot be used gets
// another name, and damaged is called with it.
func openAwayLists(fsys durable.FS, dir string, damaged func(path string, err error)) (*awayLists, error) {
	l := &awayLists{fs: fsys, dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the lists of blobs that are away: %w", err)
	}
	var spans []awaySpan
	for _, e := range entries {
		if span, ok := parseAwaySpan(e.Name()); ok {
			spans = append(spans, span)
		}
		l.aside = l.aside || strings.HasPrefix(e.Name(), damagedList)
	}
	slices.SortFunc(spans, func(a, b awaySpan) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last)) })
	merged := uint32(0) // the last number of the lists so far
	for _, span := range spans {
		path := filepath.Join(dir, span.name())
		if span.last <= merged {
			err = fsys.Remove(path)
		} else {
			l.last = max(l.last, span.last)
			var list *awayList
			list, err = openAway(path, span)
			if errors.Is(err, ErrDamaged) { // it leaves the lists that it was merged from, if they are still there
				aside := filepath.Join(dir, damagedList+span.name())
				damaged(aside, err)
				err, l.aside = fsys.Rename(path, aside), true
			} else {
				merged = span.last
				l.lists = append(l.lists, list)
			}
		}
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *awayLists) close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.lists {
		if list != nil {
			err = errors.Join(err, list.file.Close())
		}
	}
	l.lists = nil
	return err
}

// now returns the lists, newest last.
func (l *awayLists) now() []*awayList {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.lists
}

// find returns the record of a Ref, or ErrNotFound. If it may have been listed where a list is damaged, the error says that too
// (isDamage).
func (l *awayLists) find(ref Ref) (Away, error) {
	_, _, a, err := l.search(ref)
	return a, err
}

func (l *awayLists) search(ref Ref) (list *awayList, number int64, a Away, err error) {
	missing := ErrNotFound
	if l.aside {
		missing = fmt.Errorf("%w: a list of blobs that are away was set aside: %w", ErrNotFound, ErrDamaged)
	}
	for _, list := range slices.Backward(l.now()) {
		a, number, err := list.find(ref)
		if err == nil {
			return list, number, a, nil
		}
		if !errors.Is(err, ErrNotFound) || isDamage(err) {
			missing = err
		}
	}
	return nil, 0, a, missing
}

// all yields the records of blobs that were not removed, without those that cannot be read.
func (l *awayLists) all() iter.Seq2[Away, error] {
	return func(yield func(Away, error) bool) {
		for a, err := range l.each() {
			if !isDamage(err) && !yield(a, err) {
				return
			}
		}
	}
}

// each is all with an error for each record that cannot be read (isDamage).
func (l *awayLists) each() iter.Seq2[Away, error] {
	return func(yield func(Away, error) bool) {
		for _, list := range l.now() {
			for a, err := range list.each() {
				if !yield(a, err) {
					return
				}
			}
		}
	}
}

// add durably lists files that are not listed yet.
func (l *awayLists) add(files []Away) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	lists := l.now()
	location := sortAway(files)
	keep, records, size := len(lists), eachOf(files), int64(len(files))
	l.last++ // also after an error: then the list may be there, and one with its numbers would be taken for merged
	span := awaySpan{l.last, l.last}
	for ; keep > 0 && lists[keep-1].count <= 2*size && lists[keep-1].isWhole(); keep-- {
		list := lists[keep-1]
		records, size = merge(list.each(), records), size+list.count
		location, span.first = max(location, list.location()), list.span.first
	}
	path := filepath.Join(l.dir, span.name())
	if err := writeAway(l.fs, path, location, records); err != nil {
		return fmt.Errorf("list blobs that are away: %w", err)
	}
	list, err := openAway(path, span)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.lists = append(slices.Clone(lists[:keep]), list)
	l.mu.Unlock()
	for _, old := range lists[keep:] {
		err = errors.Join(err, l.fs.Remove(old.path))
	}
	return err
}

// merge yields two sorted sequences in order.
func merge(a, b iter.Seq2[Away, error]) iter.Seq2[Away, error] {
	return func(yield func(Away, error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		second, err, more := next()
		for first, firstErr := range a {
			for ; firstErr == nil && more && (err != nil || second.Ref < first.Ref); second, err, more = next() {
				if !yield(second, err) {
					return
				}
			}
			if !yield(first, firstErr) {
				return
			}
		}
		for ; more; second, err, more = next() {
			if !yield(second, err) {
				return
			}
		}
	}
}

// remove notes that a blob was removed, and returns what was listed of it, nil for nothing. Like the removal of a file, it may
// be forgotten by a power cut, and where a list cannot be read: most blobs were never listed.
func (l *awayLists) remove(ref Ref) (*Away, error) {
	if len(l.now()) == 0 {
		return nil, nil //nolint:nilnil // not listed
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	list, number, a, err := l.search(ref)
	if errors.Is(err, ErrNotFound) || isDamage(err) {
		return nil, nil //nolint:nilnil // not listed
	}
	if err != nil {
		return nil, err
	}
	f, err := l.fs.Reopen(list.path)
	if err != nil {
		return nil, fmt.Errorf("remove a blob that is away: %w", err)
	}
	_, err = f.WriteAt([]byte{1}, int64(awayHead)+(number+1)*list.record-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("remove a blob that is away: %w", err)
	}
	return &a, nil
}

// copy writes the lists to dir, which it makes, and what they leave open.
func (l *awayLists) copy(dir string) error {
	if err := l.fs.Mkdir(dir); err != nil {
		return err
	}
	for _, list := range l.now() {
		if err := writeAway(l.fs, filepath.Join(dir, list.span.name()), list.location(), list.each()); err != nil {
			return err
		}
	}
	if !l.aside {
		return nil
	}
	return durable.Publish(l.fs, filepath.Join(dir, damagedList+"copy"), 0o600, durable.Bytes())
}

// clear removes all lists.
func (l *awayLists) clear() (err error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	lists := l.now()
	l.mu.Lock()
	l.lists = nil
	l.mu.Unlock()
	for _, list := range lists {
		if removeErr := l.fs.Remove(list.path); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	if err != nil {
		return fmt.Errorf("remove the lists of blobs that are away: %w", err)
	}
	return nil
}

// IsAway reports whether a file is not on this disk but can be fetched.
func (s *Store) IsAway(ref Ref) bool {
	if len(s.away.now()) == 0 || s.onDisk(ref) {
		return false
	}
	_, err := s.away.find(ref)
	return err == nil
}

// Listed returns what is known of a file that can be fetched, whether or not it is on this disk, or ErrNotFound, also if damage to
// a list may hide it.
func (s *Store) Listed(ref Ref) (Away, error) { return s.away.find(ref) }

func (s *Store) onDisk(ref Ref) bool {
	path, err := ref.path(s.blobs)
	if err != nil {
		return false
	}
	_, err = os.Lstat(path)
	return err == nil
}

// Has reports whether a blob is there or away. It returns false only if the blob is certainly neither: what the disk fails to
// tell, or what a damaged list of what is away may have named, is no absence. Of a blob in the journal it looks only at the size of the segment.
func (s *Store) Has(ref Ref) bool {
	if at, ok := ref.position(); ok {
		info, err := os.Stat(s.journal.path(at.Segment()))
		return isThere(err) && (err != nil || at.offset() < info.Size())
	}
	path, err := ref.path(s.blobs)
	if err != nil {
		return false
	}
	if _, err = os.Lstat(path); isThere(err) {
		return true
	}
	_, err = s.away.find(ref)
	return !errors.Is(err, ErrNotFound) || isDamage(err)
}

// isThere reports whether a file may be there of which stat returned err.
func isThere(err error) bool { return !errors.Is(err, fs.ErrNotExist) }

// EachListed calls fn for each file that can be fetched, until fn fails, and returns that error unchanged. here says
// whether it is on this disk too, and not known to be damaged. It also counts for Absent.
func (s *Store) EachListed(fn func(a Away, here bool) error) error {
	before := s.absent.begin()
	var sumFiles, sumBytes int64
	for a, err := range s.away.all() {
		if err == nil {
			err = fn(a, s.fetches.intact(a.Ref))
		}
		if err != nil {
			return err
		}
		if !s.onDisk(a.Ref) {
			sumFiles, sumBytes = sumFiles+1, sumBytes+a.Size
		}
	}
	s.absent.end(before, sumFiles, sumBytes)
	return nil
}

// absent counts the files that are away.
type absent struct {
	files, bytes atomic.Int64

	counting sync.Mutex
	counts   int // that have ended
}

// count is what was known when a count began.
type count struct {
	counts       int
	files, bytes int64
}

func (a *absent) begin() count {
	a.counting.Lock()
	defer a.counting.Unlock()
	return count{a.counts, a.files.Load(), a.bytes.Load()}
}

// end adds what a count found beyond what was known, unless another one has done so meanwhile.
func (a *absent) end(before count, files, bytes int64) {
	a.counting.Lock()
	defer a.counting.Unlock()
	if a.counts == before.counts {
		a.counts++
		a.add(files-before.files, bytes-before.bytes)
	}
}

func (a *absent) add(files, bytes int64) {
	a.files.Add(files)
	a.bytes.Add(bytes)
}

// Absent returns how many files are away, and the size of their content: what the last EachListed counted, and what changed
// since.
func (s *Store) Absent() (files, bytes int64) { return s.absent.files.Load(), s.absent.bytes.Load() }
