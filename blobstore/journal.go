package blobstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"holdfast/internal/durable"
)

// journal is the log that small blobs and notes go to. Records that wait for
// one sync share the next, without a timer. Segments are only ever appended
// to by the process that made them, up to a size; any trouble ends a segment.
type journal struct {
	fs      durable.FS
	dir     string
	size    int64                      // of a segment, about
	sync    func(durable.Handle) error // unless the store is read-only
	deliver func([]Entry)
	reads   *segmentFiles

	group *group[*record]

	// What follows belongs to whoever writes for the group.
	current *segment
	last    uint32          // number of the newest segment there ever was
	buffer  *durable.Buffer // of current

	numbers segmentNumbers
}

// segment is the file that is appended to.
type segment struct {
	number uint32
	mark   mark
	pageWriter
	batch uint32
}

// writeSize is how much of a batch is put together in memory at the most.
const writeSize = 1 << 20

// append makes records durable, in their order and next to each other, and
// delivers them.
func (j *journal) append(records ...*record) error { return j.group.do(j.write, records...) }

// write writes and syncs a batch. Of one that fails nothing is delivered.
func (j *journal) write(records []*record) error {
	if j.current == nil || j.current.offset() >= j.size {
		if err := j.roll(); err != nil {
			return err
		}
	}
	s := j.current
	before := s.offset()
	if err := j.writeRecords(s, records); err != nil {
		return errors.Join(fmt.Errorf("write journal: %w", err), j.end(before))
	}
	if err := j.sync(s.file); err != nil {
		return errors.Join(fmt.Errorf("sync journal: %w", err), j.end(before))
	}
	s.batch++
	j.deliver(entriesOf(records))
	return nil
}

func (j *journal) writeRecords(s *segment, records []*record) error {
	for i, r := range records {
		r.position, r.batch, r.first = positionOf(s.number, s.offset()), s.batch, i == 0
		h := r.header(s.mark)
		for _, part := range [][]byte{h[:], r.note, r.blob} {
			if err := s.write(part); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

// end gives the current segment up, cut back to what was acknowledged of it:
// what failed must not come back with the next start.
func (j *journal) end(size int64) error {
	s := j.current
	j.current = nil
	return errors.Join(s.file.Close(), j.fs.Truncate(j.path(s.number), size))
}

// roll begins a segment.
func (j *journal) roll() error {
	if err := j.seal(); err != nil {
		return err
	}
	number := j.last + 1
	f, err := j.fs.Create(j.path(number))
	if err != nil {
		return fmt.Errorf("make journal segment: %w", err)
	}
	s := &segment{number: number, mark: newMark(), pageWriter: pageWriter{file: f, buffer: j.buffer}}
	if err := j.start(s); err != nil {
		return errors.Join(err, f.Close(), j.fs.Remove(j.path(number)))
	}
	j.last, j.current = number, s
	j.numbers.add(number)
	return nil
}

// start makes a new segment, and its name, durable.
func (j *journal) start(s *segment) error {
	line := []byte(segmentLine(s.number, s.mark))
	if err := errors.Join(s.write(line), s.flush()); err != nil {
		return fmt.Errorf("begin journal segment: %w", err)
	}
	if err := j.sync(s.file); err != nil {
		return fmt.Errorf("begin journal segment: %w", err)
	}
	d, err := j.fs.OpenDir(j.dir)
	if err != nil {
		return fmt.Errorf("open journal directory: %w", err)
	}
	defer d.Close()
	return j.sync(d)
}

func (j *journal) path(number uint32) string {
	return filepath.Join(j.dir, directoryName(number))
}

// Close closes the files; no append may be under way.
func (j *journal) Close() error {
	j.reads.close()
	return j.seal()
}

// seal ends the current segment, whose last page zeros fill.
func (j *journal) seal() error {
	s := j.current
	if s == nil {
		return nil
	}
	j.current = nil
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close journal segment: %w", err)
	}
	return nil
}

// sealAll returns the numbers of all segments, none of which is written to any
// more.
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

// segmentNumbers are the segments there are.
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

// sealed returns the numbers of the segments that are not written any more:
// all but the newest.
func (n *segmentNumbers) sealed() []uint32 {
	all := n.list()
	return all[:max(0, len(all)-1)]
}
