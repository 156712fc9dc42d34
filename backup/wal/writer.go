package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// ErrSync means that a sync failed. The data may be lost although the kernel reports success for a second attempt,
// so nothing is retried and the writer is unusable. A new writer reads back the existing data and writes it to a new
// file.
var ErrSync = errors.New("WAL could not be made durable")

// Writer appends WAL to one generation. It is not safe for concurrent use.
type Writer struct {
	archive *Archive
	branch  *branch
	failed  error // an ErrSync

	timeline uint32
	fork     xlog.LSN // the WAL of the timeline before it repeats that of the one it forked from
	scan     *xlog.Scanner
	sum      *summary
	file     durable.File // the open segment; nil between segments
	n        uint64
	pos      xlog.LSN // end of the received bytes

	// since is a time before which every acknowledged commit is in the archive, zero if none is known. Its owner keeps it.
	since time.Time

	unsynced   bool
	commits    []time.Time // times of commits after the fork since the last Sync, at most maxCommits
	compressor *compressor
}

// maxCommits bounds the number of commit times kept between two syncs.
const maxCommits = 4096

// Writer returns the writer of a generation. A generation can have only one at a time.
func (a *Archive) Writer(generation int) (*Writer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.branch(generation)
	if err != nil {
		return nil, err
	}
	if b.writer != nil {
		return nil, fmt.Errorf("generation %d of the WAL archive already has a writer", generation)
	}
	if a.lock == nil {
		return nil, errors.New("the WAL archive is open read-only")
	}
	w := &Writer{archive: a, branch: b, compressor: newCompressor(a, b)}
	b.writer = w
	return w, nil
}

// Close closes the writer. WAL that Sync did not confirm may be lost.
func (w *Writer) Close() error {
	w.compressor.close()
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

// Identify records the cluster of the WAL the first time, and refuses another cluster afterwards with an ErrDiverged.
func (w *Writer) Identify(system, segmentSize uint64, timeline uint32) error {
	known := *w.branch.info()
	switch {
	case !xlog.ValidSegmentSize(segmentSize):
		return fmt.Errorf("%w: the server reports WAL segments of %d bytes", ErrDiverged, segmentSize)
	case known.System == 0:
		known.System, known.SegmentSize, known.Timeline = system, segmentSize, timeline
		return w.begin(known)
	case known.System != system:
		return fmt.Errorf("%w: the server has system identifier %d, the archive %d: it is another cluster", ErrDiverged, system, known.System)
	case known.SegmentSize != segmentSize:
		return fmt.Errorf("%w: the server has WAL segments of %d bytes, the archive of %d", ErrDiverged, segmentSize, known.SegmentSize)
	}
	return nil
}

// begin records the cluster of the WAL. The directory has WAL already if the generation file was lost and is made anew.
func (w *Writer) begin(known Generation) error {
	had, err := w.archive.orphaned(w.branch.number, known)
	if err != nil {
		return err
	}
	w.archive.mu.Lock()
	defer w.archive.mu.Unlock()
	err = w.archive.record(w.branch, func(i *Generation) {
		i.System, i.SegmentSize, i.Timeline = known.System, known.SegmentSize, known.Timeline
	})
	if err == nil {
		w.branch.segments, w.branch.histories = had.segments, had.histories
	}
	return err
}

// record changes the metadata of a generation durably. The caller holds mu.
func (a *Archive) record(b *branch, change func(*Generation)) error {
	known := *b.info()
	change(&known)
	if err := known.publish(a.fsys, b.dir); err != nil {
		return err
	}
	b.known.Store(&known)
	a.published(b, generationFile)
	return nil
}

// AddGap records WAL that will never arrive.
func (w *Writer) AddGap(g Gap) error {
	w.archive.mu.Lock()
	defer w.archive.mu.Unlock()
	return w.archive.addGap(w.branch, g)
}

// AddHistory stores the history file of a timeline.
func (w *Writer) AddHistory(timeline uint32, text []byte) error {
	h, err := xlog.ParseHistory(timeline, text)
	if err != nil {
		return err
	}
	path := w.branch.dir + "/" + xlog.HistoryName(timeline)
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, text) {
		if err := durable.Publish(w.archive.fsys, path, 0o600, durable.Bytes(text)); err != nil {
			return err
		}
	}
	w.archive.mu.Lock()
	defer w.archive.mu.Unlock()
	w.branch.histories[timeline] = h
	w.archive.published(w.branch, xlog.HistoryName(timeline))
	return nil
}

// Latest returns the latest timeline written and its end. ok is false if nothing was written.
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

// Start begins to append to a timeline: at the end of its WAL in the archive or, if it has none or from is in a
// later segment, at the start of from's segment. It returns the position to continue at. It copies a partial segment
// to a new file, because it is unknown which of the unconfirmed bytes are on disk.
func (w *Writer) Start(timeline uint32, from xlog.LSN) (xlog.LSN, error) {
	if w.failed != nil {
		return 0, w.failed
	}
	if err := w.closeFile(); err != nil {
		return 0, fmt.Errorf("close WAL segment: %w", err)
	}
	w.compressor.wait()
	size := w.branch.info().SegmentSize
	first := segmentKey{timeline, uint64(from) / size}
	w.timeline, w.commits = timeline, w.commits[:0]
	var last *segment
	w.archive.mu.Lock()
	_, _, fork, err := w.archive.forkOf(w.branch, timeline)
	if err != nil {
		fork = 0 // the parent was removed
	}
	w.fork = fork
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
	scan, sum, err := w.archive.scannerAt(w.branch, key)
	if err != nil {
		return 0, err
	}
	w.scan, w.sum, w.n, w.pos = scan, sum, key.n, w.branch.start(key)
	return w.pos, nil
}

// takeOver continues a partial segment in a new file.
func (w *Writer) takeOver(s *segment) (xlog.LSN, error) {
	start := w.branch.start(s.segmentKey)
	if s.end == w.branch.limit(s.segmentKey) {
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
	err = durable.Publish(w.archive.fsys, path, 0o600, func(f durable.File) error {
		if err := w.allocate(f); err != nil {
			return err
		}
		_, err := f.WriteAt(held, 0)
		return err
	})
	if err != nil {
		return 0, err
	}
	w.pos = s.end
	return w.pos, w.reopen(path)
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
