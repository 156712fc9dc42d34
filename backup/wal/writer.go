package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/backup/wal/xlog"
)

// ErrSync is a sync that failed. What it was to make durable may be lost,
// and the kernel may say of a second attempt that it went well; so nothing is
// tried again, and the writer is of no use any more. A new one reads back what
// there is and writes it to a new file.
var ErrSync = errors.New("WAL could not be made durable")

// Writer appends WAL to one incarnation. It is for one goroutine.
type Writer struct {
	archive *Archive
	branch  *branch
	failed  error // an ErrSync

	timeline uint32
	scan     *xlog.Scanner
	sum      *summary
	file     file // the open segment, nil between two
	n        uint64
	pos      xlog.LSN // up to here bytes have come

	unsynced bool
	commits  []time.Time // of commits since the last Sync, but not of very many
	packer   *packer
}

// maxCommits bounds what is remembered of commits between two syncs.
const maxCommits = 4096

// Writer returns the writer of an incarnation; there can be one at a time.
func (a *Archive) Writer(incarnation int) (*Writer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.branch(incarnation)
	if err != nil {
		return nil, err
	}
	if b.writer != nil {
		return nil, fmt.Errorf("incarnation %d of the WAL archive has a writer already", incarnation)
	}
	if a.lock == nil {
		return nil, errors.New("the WAL archive is open to be read only")
	}
	w := &Writer{archive: a, branch: b}
	w.packer = newPacker(w)
	b.writer = w
	return w, nil
}

// Close ends the writing. What Sync has not confirmed may be lost.
func (w *Writer) Close() error {
	w.packer.close()
	w.archive.mu.Lock()
	w.branch.writer = nil
	w.archive.mu.Unlock()
	return w.closeFile()
}

func (w *Writer) closeFile() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.Close()
}

// Identify records whose WAL it is, the first time, and refuses another's
// afterwards.
func (w *Writer) Identify(system, segmentSize uint64, timeline uint32) error {
	known := *w.branch.info()
	switch {
	case !xlog.ValidSegmentSize(segmentSize):
		return fmt.Errorf("the server says its WAL segments have %d bytes", segmentSize)
	case known.System == 0:
		return w.record(func(i *Incarnation) { i.System, i.SegmentSize, i.Timeline = system, segmentSize, timeline })
	case known.System != system:
		return fmt.Errorf("the server has the system identifier %d, and the archive is of %d: it is another cluster", system, known.System)
	case known.SegmentSize != segmentSize:
		return fmt.Errorf("the server has WAL segments of %d bytes, and the archive of %d", segmentSize, known.SegmentSize)
	}
	return nil
}

// record changes what is known of the incarnation.
func (w *Writer) record(change func(*Incarnation)) error {
	a := w.archive
	a.mu.Lock()
	defer a.mu.Unlock()
	known := *w.branch.info()
	change(&known)
	if err := known.publish(a.fsys, w.branch.dir); err != nil {
		return err
	}
	w.branch.known.Store(&known)
	return nil
}

// AddGap records that WAL will never come.
func (w *Writer) AddGap(g Gap) error {
	return w.record(func(i *Incarnation) { i.Gaps = append(i.Gaps[:len(i.Gaps):len(i.Gaps)], g) })
}

// AddHistory keeps the history file of a timeline.
func (w *Writer) AddHistory(timeline uint32, text []byte) error {
	h, err := xlog.ParseHistory(timeline, text)
	if err != nil {
		return err
	}
	path := w.branch.dir + "/" + xlog.HistoryName(timeline)
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, text) {
		if err := publishBytes(w.archive.fsys, path, text); err != nil {
			return err
		}
	}
	w.archive.mu.Lock()
	defer w.archive.mu.Unlock()
	w.branch.histories[timeline] = h
	return nil
}

// Latest is the timeline that was written to last and how far it goes; false
// when nothing is there.
func (w *Writer) Latest() (timeline uint32, end xlog.LSN, ok bool) {
	w.archive.mu.Lock()
	defer w.archive.mu.Unlock()
	all := w.branch.timelines()
	if len(all) == 0 {
		return 0, 0, false
	}
	timeline = all[len(all)-1]
	return timeline, w.branch.end(timeline), true
}

// Start begins to append to a timeline: where its WAL in the archive ends, or,
// if there is none or from lies in a later segment, at the start of from's
// segment. It returns the position to go on at. What the open segment holds is
// written anew: of bytes that were written and perhaps not made durable nothing
// is known.
func (w *Writer) Start(timeline uint32, from xlog.LSN) (xlog.LSN, error) {
	if w.failed != nil {
		return 0, w.failed
	}
	if err := w.closeFile(); err != nil {
		return 0, fmt.Errorf("close WAL segment: %w", err)
	}
	w.packer.wait()
	size := w.branch.info().SegmentSize
	first := segmentKey{timeline, uint64(from) / size}
	w.timeline, w.commits = timeline, w.commits[:0]
	var last *segment
	w.archive.mu.Lock()
	if all := w.branch.of(timeline); len(all) > 0 && all[len(all)-1].n >= first.n {
		last = all[len(all)-1]
	}
	w.archive.mu.Unlock()
	switch {
	case last == nil:
		return w.startAt(first)
	case last.compressed:
		return w.startAt(segmentKey{timeline, last.n + 1})
	}
	return w.takeOver(last)
}

// startAt begins a segment.
func (w *Writer) startAt(key segmentKey) (xlog.LSN, error) {
	scan, sum, err := w.archive.begin(w.branch, key)
	if err != nil {
		return 0, err
	}
	w.scan, w.sum, w.n, w.pos = scan, sum, key.n, w.branch.start(key)
	return w.pos, nil
}

// takeOver goes on with a partial segment, in a new file.
func (w *Writer) takeOver(s *segment) (xlog.LSN, error) {
	start := w.branch.start(s.segmentKey)
	if s.end == w.branch.limit(s.segmentKey) {
		if err := w.packAgain(s); err != nil {
			return 0, err
		}
		return w.startAt(segmentKey{s.timeline, s.n + 1})
	}
	if _, err := w.startAt(s.segmentKey); err != nil || s.end == start {
		return w.pos, err
	}
	path := w.branch.path(s.segmentKey, partialSuffix)
	held, err := readHead(path, int(s.end-start))
	if err != nil {
		return 0, err
	}
	w.scan.Each(held, func(r *xlog.Record) { w.sum.add(r, start) })
	if w.scan.Err() != nil || w.whole() != s.end {
		return 0, fmt.Errorf("partial WAL segment %s has changed: %w", w.branch.name(s.segmentKey), errors.Join(errDamaged, w.scan.Err()))
	}
	err = publish(w.archive.fsys, path, int64(w.branch.info().SegmentSize), func(f file) error {
		_, err := f.WriteAt(held, 0)
		return err
	})
	if err != nil {
		return 0, err
	}
	w.pos = s.end
	return w.pos, w.reopen(path)
}

// packAgain queues a full segment that could not be packed before, or not yet;
// it may have been by now.
func (w *Writer) packAgain(s *segment) error {
	sum, err := w.archive.summarizePartial(w.branch, s)
	if w.archive.packed(w.branch, s, err) != nil {
		return nil
	}
	if errors.Is(err, ErrGap) { // what comes goes on; who needs this is told, too
		w.archive.log.Error("a full segment of WAL is damaged and cannot be packed", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	w.packer.add(s.segmentKey, sum)
	return nil
}

func readHead(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read partial WAL segment: %w", err)
	}
	defer f.Close()
	held := make([]byte, n)
	if _, err := f.ReadAt(held, 0); err != nil {
		return nil, fmt.Errorf("read partial WAL segment: %w", err)
	}
	return held, nil
}
