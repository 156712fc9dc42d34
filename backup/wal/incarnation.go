package wal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"holdfast/backup/wal/xlog"
)

// Incarnation is what is known of a data directory's generation, kept in the
// file "incarnation" of its directory.
type Incarnation struct {
	// Parent is where it forked from another incarnation of this archive; nil
	// when it did not.
	Parent *Parent `json:"parent,omitempty"`
	// System is the cluster's system identifier, SegmentSize the size of its
	// segments in bytes, Timeline the first it was received on; 0 = nothing
	// has been received.
	System      uint64 `json:"system,string"`
	SegmentSize uint64 `json:"segment_bytes"`
	Timeline    uint32 `json:"timeline"`
	// Gaps are stretches of WAL that will never come.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Parent is a position from which an incarnation forked.
type Parent struct {
	Incarnation int      `json:"incarnation"`
	Timeline    uint32   `json:"timeline"`
	Fork        xlog.LSN `json:"fork"` // the first position that is the child's own
}

// Gap is WAL the archive has missed for good, from one position up to another.
type Gap struct {
	Timeline uint32    `json:"timeline"`
	From     xlog.LSN  `json:"from"`
	To       xlog.LSN  `json:"to"`
	At       time.Time `json:"at"` // when it was noticed
	Reason   string    `json:"reason"`
}

const (
	incarnationFile   = "incarnation"
	incarnationFormat = 1
)

// incarnationError is a damaged file without which nothing certain is known of
// an incarnation.
type incarnationError struct {
	path string
	err  error
}

func (e *incarnationError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrGap, e.path, e.err) }

// Unwrap returns ErrGap and the cause.
func (e *incarnationError) Unwrap() []error { return []error{ErrGap, e.err} }

// readIncarnation reads the file in dir; fs.ErrNotExist when there is none.
func readIncarnation(dir string) (i Incarnation, err error) {
	path := filepath.Join(dir, incarnationFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return i, fmt.Errorf("read WAL archive: %w", err)
	}
	var version int
	var crc uint32
	n := slices.Index(text, '\n') + 1
	if _, err := fmt.Sscanf(string(text[:n]), "holdfast wal %d %08x\n", &version, &crc); err != nil {
		return i, &incarnationError{path, damagedf("it does not begin as one of a WAL archive does")}
	}
	if version > incarnationFormat {
		return i, fmt.Errorf("WAL archive %s has format %d, and this program knows formats up to %d: use a newer holdfast", dir, version, incarnationFormat)
	}
	if crc != crc32.Checksum(text[n:], castagnoli) || json.Unmarshal(text[n:], &i) != nil {
		return i, &incarnationError{path, errDamaged}
	}
	return i, nil
}

func (i Incarnation) publish(fsys fileSystem, dir string) error {
	text, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode incarnation: %w", err)
	}
	text = append(text, '\n')
	head := fmt.Sprintf("holdfast wal %d %08x\n", incarnationFormat, crc32.Checksum(text, castagnoli))
	return publishBytes(fsys, filepath.Join(dir, incarnationFile), []byte(head), text)
}

// branch is an incarnation and the files there are of it.
type branch struct {
	number    int
	dir       string
	known     atomic.Pointer[Incarnation]
	segments  map[segmentKey]*segment
	histories map[uint32]xlog.History
	writer    *Writer // who appends, if anybody does
}

type segmentKey struct {
	timeline uint32
	n        uint64
}

// segment is a file of WAL.
type segment struct {
	segmentKey
	compressed bool
	end        xlog.LSN // of what it durably holds; of a .partial, the last whole record's
	stored     int64
	summary    *summary // once it has been read or made
}

func newBranch(number int, dir string, known Incarnation) *branch {
	b := &branch{number: number, dir: dir, segments: map[segmentKey]*segment{}, histories: map[uint32]xlog.History{}}
	b.known.Store(&known)
	return b
}

// info is what is known of the incarnation; it is replaced, never changed.
func (b *branch) info() *Incarnation { return b.known.Load() }

func (b *branch) path(k segmentKey, suffix string) string {
	return filepath.Join(b.dir, b.name(k)+suffix)
}

func (b *branch) name(k segmentKey) string {
	return xlog.SegmentName(k.timeline, k.n, b.info().SegmentSize)
}

func (b *branch) start(k segmentKey) xlog.LSN { return xlog.LSN(k.n * b.info().SegmentSize) }

func (b *branch) limit(k segmentKey) xlog.LSN { return xlog.LSN((k.n + 1) * b.info().SegmentSize) }

// of are the segments of a timeline, in order.
func (b *branch) of(timeline uint32) (all []*segment) {
	for k, s := range b.segments {
		if k.timeline == timeline {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *segment) int {
		if x.n < y.n {
			return -1
		}
		return 1
	})
	return all
}

// timelines are those there are segments of, in order.
func (b *branch) timelines() (all []uint32) {
	for k := range b.segments {
		if !slices.Contains(all, k.timeline) {
			all = append(all, k.timeline)
		}
	}
	slices.Sort(all)
	return all
}

// newest is the last segment of the latest timeline.
func (b *branch) newest() (key segmentKey) {
	for k := range b.segments {
		if k.timeline > key.timeline || k.timeline == key.timeline && k.n >= key.n {
			key = k
		}
	}
	return key
}

// end is how far the archive goes on a timeline.
func (b *branch) end(timeline uint32) xlog.LSN {
	var end xlog.LSN
	for k, s := range b.segments {
		if k.timeline == timeline {
			end = max(end, s.end)
		}
	}
	return end
}

func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
