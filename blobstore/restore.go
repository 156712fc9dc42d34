package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"holdfast/internal/durable"
)

// ErrGap means that bytes of the journal do not follow those that are there.
var ErrGap = errors.New("the journal lacks what came before")

// Restorer makes a store of what a Tap returned. The directory becomes a store when Finish returns, and not before. It is
// not safe for concurrent use.
type Restorer struct {
	dir      string
	fs       durable.FS
	segments map[uint32]bool
	file     *os.File // the segment that was written last; nil for none
	number   uint32   // of it, also once it is closed
	away     map[Ref]Away
}

// NewRestorer empties dir, or creates it.
func NewRestorer(dir string) (*Restorer, error) {
	r := &Restorer{dir: dir, fs: durable.OS{}, segments: map[uint32]bool{}, away: map[Ref]Away{}}
	err := os.RemoveAll(dir)
	for _, path := range []string{dir, filepath.Join(dir, "journal"), filepath.Join(dir, "incoming"), filepath.Join(dir, "blobs"), filepath.Join(dir, "parts"), filepath.Join(dir, awayDirectory)} {
		if err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("restore blob store: %w", err)
	}
	return r, nil
}

func (r *Restorer) path(number uint32) string {
	return filepath.Join(r.dir, "journal", directoryName(number))
}

// Write writes bytes of a segment, which may be there already. It returns ErrGap if those before them are missing. Bytes
// of another segment with the same number replace it.
func (r *Restorer) Write(number uint32, from int64, b []byte) error {
	if from > 0 && !r.segments[number] {
		return gapError(number, from, 0)
	}
	if err := r.open(number); err != nil {
		return fmt.Errorf("restore journal segment: %w", err)
	}
	size, err := r.file.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return fmt.Errorf("restore journal segment: %w", err)
	case from > size:
		return gapError(number, from, size)
	case from == 0 && size > 0:
		err = r.replace(b)
	}
	if err == nil {
		_, err = r.file.WriteAt(b, from)
	}
	if err != nil {
		return fmt.Errorf("restore journal segment: %w", err)
	}
	r.segments[number] = true
	return nil
}

func gapError(number uint32, from, size int64) error {
	return fmt.Errorf("restore journal segment %08x from %d on, of which %d bytes are there: %w", number, from, size, ErrGap)
}

// replace empties the open segment if b begins another one.
func (r *Restorer) replace(b []byte) error {
	begins := make([]byte, min(len(b), segmentHeader))
	n, err := r.file.ReadAt(begins, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.Equal(begins[:n], b[:n]) {
		return nil
	}
	return r.file.Truncate(0)
}

func (r *Restorer) open(number uint32) error {
	if r.file != nil && r.number == number {
		return nil
	}
	if err := r.close(); err != nil {
		return err
	}
	f, err := os.OpenFile(r.path(number), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		r.file, r.number = f, number
	}
	return err
}

func (r *Restorer) close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Drop removes a segment. It is idempotent.
func (r *Restorer) Drop(number uint32) error {
	err := r.close()
	if removeErr := os.Remove(r.path(number)); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	delete(r.segments, number)
	if err != nil {
		return fmt.Errorf("restore journal segment: %w", err)
	}
	return nil
}

// Away lists a file that is elsewhere.
func (r *Restorer) Away(a Away) error {
	if err := a.valid(); err != nil {
		return fmt.Errorf("restore blob: %w", err)
	}
	r.away[a.Ref] = a
	return nil
}

// Finish makes everything durable. A record that is not whole, at the end of what was written last, is cut off.
func (r *Restorer) Finish() error {
	if err := r.finish(); err != nil {
		return fmt.Errorf("restore blob store: %w", err)
	}
	return nil
}

func (r *Restorer) finish() error {
	if err := r.close(); err != nil {
		return err
	}
	if r.segments[r.number] { // only the log's end may lack the rest of a record
		if err := r.complete(r.number); err != nil {
			return err
		}
	}
	for number := range r.segments {
		if err := r.sync(number); err != nil {
			return err
		}
	}
	if len(r.away) > 0 {
		lists := awayLists{fs: r.fs, dir: filepath.Join(r.dir, awayDirectory)}
		if err := errors.Join(lists.add(slices.Collect(maps.Values(r.away))), lists.close()); err != nil {
			return err
		}
	}
	for _, name := range []string{"journal", "incoming", "blobs", "parts", awayDirectory, ""} {
		if err := durable.SyncDir(r.fs, filepath.Join(r.dir, name)); err != nil {
			return err
		}
	}
	if err := durable.SyncDir(r.fs, filepath.Dir(r.dir)); err != nil {
		return err
	}
	return durable.Publish(r.fs, filepath.Join(r.dir, formatFile), 0o600, durable.Bytes([]byte(formatLine(formatVersion))))
}

// complete cuts a segment off after its last whole record: the log may end within the records that were written together.
func (r *Restorer) complete(number uint32) error {
	end := int64(segmentHeader)
	j := &journal{dir: filepath.Join(r.dir, "journal")}
	var unread error
	err := j.scan(number, func(e Entry, blob []byte) error {
		end = e.Position.offset() + recordHeader + int64(len(e.Note)+len(blob))
		return nil
	}, func(_ Position, err error) {
		if errors.Is(err, syscall.EIO) {
			unread = err
		}
	})
	if err := errors.Join(err, unread); err != nil {
		return err
	}
	info, err := os.Stat(r.path(number))
	if err != nil || info.Size() <= end {
		return err
	}
	return os.Truncate(r.path(number), end)
}

func (r *Restorer) sync(number uint32) error {
	f, err := r.fs.OpenFile(r.path(number))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
