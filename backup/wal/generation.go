package wal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// Generation is the metadata of a generation, stored in the file "incarnation" of its directory.
type Generation struct {
	// Parent is the fork from another generation of this archive, or nil.
	Parent *Parent `json:"parent,omitempty"`
	// System is the cluster's system identifier, SegmentSize the size of its segments in bytes, Timeline the first
	// timeline received. They are 0 until WAL is received.
	System      uint64 `json:"system,string"`
	SegmentSize uint64 `json:"segment_bytes"`
	Timeline    uint32 `json:"timeline"`
	// Gaps are ranges of WAL that will never arrive, or that were lost, in the order of their ends.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Parent is the position that a generation forked from.
type Parent struct {
	Generation int      `json:"incarnation"`
	Timeline   uint32   `json:"timeline"`
	Fork       xlog.LSN `json:"fork"` // the first position that is the child's own
}

// Gap is a range of WAL that the archive lacks permanently. At is the time of its detection or, if the WAL was in the archive
// once, the time of the last commit before it.
type Gap struct {
	Timeline uint32    `json:"timeline"`
	From     xlog.LSN  `json:"from"`
	To       xlog.LSN  `json:"to"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}

const (
	generationFile   = "incarnation"
	generationFormat = 1
)

// generationError means that a file that a generation cannot do without is damaged.
type generationError struct {
	path string
	err  error
}

func (e *generationError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrGap, e.path, e.err) }

// Unwrap returns ErrGap and the cause.
func (e *generationError) Unwrap() []error { return []error{ErrGap, e.err} }

// readGeneration reads the generation file in dir. It returns fs.ErrNotExist if there is none.
func readGeneration(dir string) (i Generation, err error) {
	path := filepath.Join(dir, generationFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return i, fmt.Errorf("read WAL archive: %w", err)
	}
	return parseGeneration(path, text)
}

// parseGeneration reads the text of the generation file in path.
func parseGeneration(path string, text []byte) (i Generation, err error) {
	var version int
	var crc uint32
	n := slices.Index(text, '\n') + 1
	if _, err := fmt.Sscanf(string(text[:n]), "holdfast wal %d %08x\n", &version, &crc); err != nil {
		return i, &generationError{path, damagedf("it does not begin like a file of a WAL archive")}
	}
	if version > generationFormat {
		return i, fmt.Errorf("WAL archive %s has format %d, and this program knows formats up to %d: use a newer holdfast", filepath.Dir(path), version, generationFormat)
	}
	if crc != crc32.Checksum(text[n:], castagnoli) || json.Unmarshal(text[n:], &i) != nil {
		return i, &generationError{path, errDamaged}
	}
	return i, nil
}

func (i Generation) publish(fsys durable.FS, dir string) error {
	text, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode generation: %w", err)
	}
	text = append(text, '\n')
	head := fmt.Sprintf("holdfast wal %d %08x\n", generationFormat, crc32.Checksum(text, castagnoli))
	return durable.Publish(fsys, filepath.Join(dir, generationFile), 0o600, durable.Bytes([]byte(head), text))
}

// branch is a generation and its files.
type branch struct {
	number    int
	dir       string
	known     atomic.Pointer[Generation]
	segments  map[segmentKey]*segment
	histories map[uint32]xlog.History
	writer    *Writer // nil if none is open

	compressing sync.Mutex // held while its full segments are compressed
}

type segmentKey struct {
	timeline uint32
	n        uint64
}

func (k segmentKey) compare(other segmentKey) int {
	return cmp.Or(cmp.Compare(k.timeline, other.timeline), cmp.Compare(k.n, other.n))
}

// segment is a file of WAL.
type segment struct {
	segmentKey
	compressed bool
	end        xlog.LSN // of its durable content; for a .partial, of the last complete record
	stored     int64
	summary    *summary // nil until it is read or made
	damaged    bool     // a full .partial that cannot be compressed
}

func newBranch(number int, dir string, known Generation) *branch {
	b := &branch{number: number, dir: dir, segments: map[segmentKey]*segment{}, histories: map[uint32]xlog.History{}}
	b.known.Store(&known)
	return b
}

// info returns the metadata, which is replaced, never modified.
func (b *branch) info() *Generation { return b.known.Load() }

func (b *branch) path(k segmentKey, suffix string) string {
	return filepath.Join(b.dir, b.name(k)+suffix)
}

func (b *branch) name(k segmentKey) string {
	return xlog.SegmentName(k.timeline, k.n, b.info().SegmentSize)
}

func (b *branch) start(k segmentKey) xlog.LSN { return xlog.LSN(k.n * b.info().SegmentSize) }

func (b *branch) limit(k segmentKey) xlog.LSN { return xlog.LSN((k.n + 1) * b.info().SegmentSize) }

// of returns the segments of a timeline, in order.
func (b *branch) of(timeline uint32) (all []*segment) {
	for k, s := range b.segments {
		if k.timeline == timeline {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *segment) int { return x.compare(y.segmentKey) })
	return all
}

// timelines returns the timelines with segments, in order.
func (b *branch) timelines() (all []uint32) {
	for k := range b.segments {
		if !slices.Contains(all, k.timeline) {
			all = append(all, k.timeline)
		}
	}
	slices.Sort(all)
	return all
}

// latestTimeline returns the timeline of the newest WAL, or the one that will follow the parent's; 0 if neither is known.
func (b *branch) latestTimeline() uint32 {
	if all := b.timelines(); len(all) > 0 {
		return all[len(all)-1]
	}
	if p := b.info().Parent; p != nil {
		return p.Timeline + 1
	}
	return 0
}

// newest returns the last segment of the latest timeline.
func (b *branch) newest() (key segmentKey) {
	for k := range b.segments {
		if k.compare(key) > 0 {
			key = k
		}
	}
	return key
}

// end returns the end of the WAL on a timeline.
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
