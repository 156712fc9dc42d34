package blobstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"holdfast/internal/durable"
)

// Entry is a record of the journal: a note and, if there is one, the small blob published with it.
type Entry struct {
	Position Position
	Note     []byte
	// Ref names the blob, or is "" if the record has none: the note was logged alone, or with a blob that is a file.
	// Size is in bytes.
	Ref  Ref
	Size int64
	// Value is the value passed with the note, or nil on replay.
	Value any
}

func entriesOf(records []*record) []Entry {
	entries := make([]Entry, len(records))
	for i, r := range records {
		entries[i] = Entry{Position: r.position, Note: r.note, Value: r.value}
		if r.hasBlob {
			entries[i].Ref, entries[i].Size = journalRef(r.position), int64(len(r.blob))
		}
	}
	return entries
}

// replayBatch is the number of entries delivered at a time.
const replayBatch = 256

// openJournal opens the journal and delivers its entries after opts.After. It never appends to a segment that
// another process wrote.
func (s *Store) openJournal(dir string, opts Options) (*journal, error) {
	j := &journal{
		store: s, dir: dir, size: opts.SegmentSize, deliver: opts.Deliver, reads: &segmentFiles{open: map[uint32]*os.File{}}, group: newGroup[*record](), last: opts.After.Segment(), buffer: durable.NewBuffer(writeSize),
	}
	numbers, err := listNumbered(dir)
	if err != nil {
		return nil, err
	}
	if len(numbers) > 0 {
		j.last = max(j.last, numbers[len(numbers)-1])
	}
	j.numbers.all = numbers
	for _, number := range numbers {
		if number < opts.After.Segment() {
			continue
		}
		if err := j.replay(number, opts); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// replay delivers a segment's entries after those that the caller has. It syncs them first: the caller may make them
// durable elsewhere, and a process that was killed may have left them only in the kernel.
func (j *journal) replay(number uint32, opts Options) error {
	h, err := j.store.fs.OpenFile(j.path(number))
	if err != nil {
		return fmt.Errorf("open journal segment: %w", err)
	}
	defer h.Close()
	if err := j.store.syncFile(h); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	var entries []Entry
	flush := func() {
		if len(entries) > 0 {
			j.deliver(entries)
		}
		entries = nil
	}
	err = j.scan(number, func(e Entry, _ []byte) error {
		if e.Position <= opts.After {
			return nil
		}
		if entries = append(entries, e); len(entries) == replayBatch {
			flush()
		}
		return nil
	}, func(at Position, err error) {
		if at > opts.After {
			flush()
			opts.Damaged(at, err)
		}
	})
	flush()
	return err
}

// scan calls fn for each complete record of a segment, with its blob, and damaged with an ErrDamaged for each run of one or
// more records that were acknowledged and are damaged. What the disk does not give back counts as acknowledged and damaged.
//
// Incomplete data that a crash left at the end of a segment was never acknowledged and is ignored; any part of the
// last batch may have reached the disk. A damaged record before the first record of a batch was acknowledged: that
// batch began after the sync of the previous one.
func (j *journal) scan(number uint32, fn func(e Entry, blob []byte) error, damaged func(Position, error)) error {
	file, err := openSegment(j.path(number))
	if err != nil {
		return err
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("measure journal segment: %w", err)
	}
	f := &segmentFile{ReaderAt: file, number: number}
	return f.scan(end, fn, damaged)
}

func (f *segmentFile) scan(end int64, fn func(e Entry, blob []byte) error, damaged func(Position, error)) error {
	if err := f.readMark(); err != nil {
		return err
	}
	if f.damaged != nil {
		damaged(PositionOf(f.number, 0), f.damaged)
	}
	batch := int64(-1) // of the last complete record
	for offset := int64(segmentHeader); offset < end; {
		at := PositionOf(f.number, offset)
		buf := make([]byte, firstRead) // fn may keep its arguments
		h, note, blob, err := readRecord(f, f.mark, at, &buf)
		if isDamage(err) {
			next, unread := afterDamage(f, offset+1, end, batch, err)
			if unread != nil && !isDamage(unread) {
				return unread
			}
			if unread != nil && !errors.Is(err, ErrDamaged) {
				err = fmt.Errorf("%w: %w", ErrDamaged, unread)
			}
			if next >= 0 || unread != nil {
				damaged(at, err)
			}
			if next < 0 {
				return nil
			}
			offset = next
			continue
		}
		if err != nil {
			return err
		}
		if err := fn(entryOf(h, at, note), blob); err != nil {
			return err
		}
		batch, offset = int64(h.batch), offset+h.size()
	}
	return nil
}

func entryOf(h header, at Position, note []byte) Entry {
	e := Entry{Position: at, Note: note}
	if h.flags&flagBlob != 0 {
		e.Ref, e.Size = journalRef(at), h.blobLen
	}
	return e
}

// afterDamage returns the offset of the first header from offset on, after a damaged record, or -1 if there is none or that
// record was never acknowledged. batch is the batch of the last complete record, and cause why that one was not read. unread is
// why the record or part of what follows could not be read, nil if all of it was: without that part, it counts as acknowledged.
func afterDamage(f *segmentFile, offset, end, batch int64, cause error) (next int64, unread error) {
	if !errors.Is(cause, ErrDamaged) {
		unread = cause
	}
	next, err := findHeader(f, offset, end, func(h header) bool { return int64(h.batch) >= batch })
	unread = cmp.Or(err, unread)
	if next < 0 || unread != nil {
		return next, unread
	}
	acknowledged, unread := findHeader(f, next, end, func(h header) bool {
		return int64(h.batch) > batch && h.flags&flagFirst != 0 || int64(h.batch) > batch+1
	})
	if acknowledged < 0 && unread == nil {
		return -1, nil
	}
	return next, unread
}

// unreadStep is how much is passed over where the disk gives back nothing, and twice as much each time, until a read succeeds: then
// the end of what cannot be read is looked for in what was passed over last.
const unreadStep = 4 << 10

// findHeader returns the offset of the first valid header from offset on for which wanted returns true, or -1. It passes over
// what the disk does not give back, and returns why.
func findHeader(f *segmentFile, offset, end int64, wanted func(header) bool) (found int64, unread error) {
	buf := make([]byte, 1<<20)
	step, bad := int64(unreadStep), int64(-1) // bad is where the last read failed, -1 after one that succeeded
	for offset+recordHeader <= end {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-offset)], offset)
		if bad >= 0 && n > 0 {
			skipped := offset
			offset, bad, step = f.endOfUnread(bad, offset), -1, unreadStep
			if offset < skipped {
				continue
			}
		}
		for i := 0; i+recordHeader <= n; i++ {
			next := bytes.Index(buf[i:n], f.mark[:])
			if next < 0 {
				break
			}
			i += next
			h, ok := parseHeader(buf[i:n], f.mark, PositionOf(f.number, offset+int64(i)))
			if ok && wanted(h) {
				return offset + int64(i), unread
			}
		}
		switch {
		case err != nil && err != io.EOF:
			unread = fmt.Errorf("read journal: %w", err)
			if !isDamage(err) {
				return -1, unread
			}
			bad = (offset + int64(n)) / unreadStep * unreadStep
			offset = bad + min(step, max(unreadStep, (end-1)/unreadStep*unreadStep-bad)) // not past the last block
			step *= 2
		case n < recordHeader:
			return -1, unread
		default:
			offset, step = offset+int64(n)-recordHeader+1, unreadStep
		}
	}
	return -1, unread
}

// endOfUnread returns where the first block begins that can be read, between one that cannot be and one that can be. If these are
// several areas, it is the end of any of them.
func (f *segmentFile) endOfUnread(bad, good int64) int64 {
	var b [1]byte
	for good-bad > unreadStep {
		middle := (bad + (good-bad)/2) / unreadStep * unreadStep
		if n, _ := f.ReadAt(b[:], middle); n > 0 {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}

// Segments returns the numbers of the journal's complete segments, oldest first.
func (s *Store) Segments() []uint32 { return s.journal.numbers.sealed() }

// ReadSegment calls fn for each complete record of a segment, in order, with its blob. If other records are damaged
// it returns ErrDamaged at the end.
func (s *Store) ReadSegment(number uint32, fn func(e Entry, blob []byte) error) error {
	var damage error
	err := s.journal.scan(number, fn, func(_ Position, err error) { damage = err })
	if err != nil {
		return err
	}
	return damage
}

// DropSegment removes a complete segment that is no longer needed. It does not affect open Readers, and is
// idempotent.
func (s *Store) DropSegment(number uint32) error {
	if !slices.Contains(s.journal.numbers.sealed(), number) {
		return nil
	}
	t := s.tap.Load()
	if t != nil {
		t.dropping(number)
	}
	if err := s.fs.Remove(s.journal.path(number)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove journal segment: %w", err)
	}
	s.journal.numbers.remove(number)
	s.journal.reads.forget()
	if t != nil {
		t.add(tapChange{segment: number})
	}
	return nil
}
