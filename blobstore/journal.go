package blobstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"holdfast/internal/durable"
)

// journal is the log of small blobs and notes. Records that wait for a sync share the next one. Only the process
// that created a segment appends to it, up to a size; any error ends the segment.
type journal struct {
	store   *Store
	dir     string
	size    int64 // of a segment, approximately
	deliver func([]Entry)

	reads *segmentFiles

	group *group[*record]

	// Owned by the leader of the group's round:
	current *segment
	last    uint32          // number of the newest segment that ever existed
	buffer  *durable.Buffer // of current

	numbers segmentNumbers
}

// segment is the file that the journal appends to.
type segment struct {
	number uint32
	mark   mark
	pageWriter
	zerosEnd int64 // up to here the file has bytes: zeros after offset
	batch    uint32
}

// writeSize is the maximum size of a write, in bytes.
const writeSize = 1 << 20

// zerosAhead is how many zeros are written after the records of a small batch. The next batches overwrite them, so they
// become durable without a new size and new blocks in the file system, which costs more than the bytes.
// docs/decisions/0010-tricks.md has the figures.
const zerosAhead = 1 << 20

// zeros are as many as are written at a time.
var zeros = durable.NewBuffer(256 << 10)

// append makes records durable, in order and without others between them, and delivers them.
func (j *journal) append(records ...*record) error { return j.group.do(j.write, records...) }

// errUncertain means that a record was refused, and that the next start may find it all the same. It is an ErrReadOnly.
var errUncertain = fmt.Errorf("%w: the next start may find a refused record", ErrReadOnly)

// write writes and syncs a batch. If it fails, it delivers none of the batch, and returns errUncertain if it could not take
// it back.
func (j *journal) write(records []*record) error {
	if j.current == nil || j.current.offset() >= j.size {
		if err := j.roll(); err != nil {
			return err
		}
	}
	s := j.current
	before := s.offset()
	err := j.writeRecords(s, records)
	if err == nil && s.offset() > s.zerosEnd {
		err = s.writeZeros(s.offset()-before, j.size)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write journal: %w", err), j.takeBack(before))
	}
	if err := j.store.syncFile(s.file); err != nil {
		return errors.Join(fmt.Errorf("sync journal: %w", err), j.takeBack(before))
	}
	s.batch++
	j.tapped(s.number, before, s.offset())
	j.deliver(entriesOf(records))
	return nil
}

func (j *journal) writeRecords(s *segment, records []*record) error {
	for i, r := range records {
		r.position, r.batch, r.first = PositionOf(s.number, s.offset()), s.batch, i == 0
		h := r.header(s.mark)
		for _, part := range [][]byte{h[:], r.note, r.blob} {
			if err := s.write(part); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

// writeZeros writes zeros after a batch of that size that went beyond the last ones, within the size of a segment. Large
// batches gain nothing by them. If the disk has no space for them, it may still have some for records.
func (s *segment) writeZeros(batch, size int64) error {
	s.zerosEnd = pageEnd(s.offset())
	if batch > zerosAhead/4 {
		return nil
	}
	for past := pageEnd(min(s.offset()+zerosAhead, size)); s.zerosEnd < past; {
		n, err := s.mode.WriteAt(s.file, zeros.Bytes[:min(int64(len(zeros.Bytes)), past-s.zerosEnd)], s.zerosEnd)
		if isFull(err) {
			return nil
		}
		if err != nil {
			return err
		}
		s.zerosEnd += int64(n)
	}
	return nil
}

// takeBack ends the current segment after its acknowledged records, which end at size: failed ones must not reappear at the
// next start, so that it syncs the new size. If it cannot, the store becomes read-only, and it returns errUncertain.
func (j *journal) takeBack(size int64) error {
	s := j.current
	j.current = nil
	defer s.file.Close()
	err := j.store.fs.Truncate(j.path(s.number), size)
	if err == nil {
		err = j.store.sync(s.file, func(error) bool { return false })
	}
	if err == nil {
		return nil
	}
	j.store.broken.CompareAndSwap(nil, &err)
	return fmt.Errorf("%w: %w", errUncertain, err)
}

// roll starts a new segment.
func (j *journal) roll() error {
	if err := j.seal(); err != nil {
		return err
	}
	number := j.last + 1
	f, err := j.store.fs.Create(j.path(number))
	if err != nil {
		return fmt.Errorf("make journal segment: %w", err)
	}
	s := &segment{number: number, mark: newMark(), pageWriter: pageWriter{file: f, buffer: j.buffer}}
	if err := j.start(s); err != nil {
		removeErr := j.store.fs.Remove(j.path(number))
		if removeErr != nil { // the file may be in the way
			j.last = number
		}
		return errors.Join(err, f.Close(), removeErr)
	}
	j.last, j.current = number, s
	j.numbers.add(number)
	j.tapped(number, 0, s.offset())
	return nil
}

// tapped tells the Tap of durable bytes.
func (j *journal) tapped(segment uint32, from, end int64) {
	if t := j.store.tap.Load(); t != nil {
		t.add(tapChange{segment: segment, from: from, end: end})
	}
}

// start makes a new segment and its name durable.
func (j *journal) start(s *segment) error {
	line := []byte(segmentLine(s.number, s.mark))
	s.zerosEnd = pageEnd(int64(len(line)))
	if err := errors.Join(s.write(line), s.flush()); err != nil {
		return fmt.Errorf("begin journal segment: %w", err)
	}
	if err := j.store.syncFile(s.file); err != nil {
		return fmt.Errorf("begin journal segment: %w", err)
	}
	return j.store.syncDir(j.dir)
}

func (j *journal) path(number uint32) string {
	return filepath.Join(j.dir, directoryName(number))
}

// seal ends the current segment and cuts off the zeros after its last record.
func (j *journal) seal() error {
	s := j.current
	if s == nil {
		return nil
	}
	j.current = nil
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close journal segment: %w", err)
	}
	if s.zerosEnd > s.offset() {
		_ = j.store.fs.Truncate(j.path(s.number), s.offset())
	}
	return nil
}

// sealAll ends the current segment and returns the numbers of all segments.
func (j *journal) sealAll() (numbers []uint32, err error) {
	err = j.group.alone(func() error {
		if err := j.seal(); err != nil {
			return err
		}
		numbers = j.numbers.list()
		return nil
	})
	return numbers, err
}

// segmentNumbers are the numbers of the existing segments.
type segmentNumbers struct {
	mu  sync.Mutex
	all []uint32 // ascending
}

func (n *segmentNumbers) add(number uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, number)
}

func (n *segmentNumbers) remove(number uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = slices.DeleteFunc(n.all, func(x uint32) bool { return x == number })
}

func (n *segmentNumbers) list() []uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// sealed returns the numbers of the complete segments: all but the newest.
func (n *segmentNumbers) sealed() []uint32 {
	all := n.list()
	return all[:max(0, len(all)-1)]
}
