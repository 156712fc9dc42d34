package blobstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"holdfast/internal/ctxio"
	"holdfast/internal/durable"
)

// Section is a piece of a Part's content: its size in bytes and its CRC-32C, as Sync returned them.
type Section struct {
	Size   int64
	CRC32C uint32
}

// FinishPart returns a Writer with the content of a Part: its sections, one after the other. Publishing it removes the
// Part. FinishPart reads the content once, and writes it to copyTo unless that is nil. If the bytes differ from what was
// written, it returns ErrDamaged. Any failure leaves the sections as they are.
func (s *Store) FinishPart(ctx context.Context, id string, sections []Section, copyTo io.Writer) (*Writer, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("finish part: %w", err)
	}
	defer s.life.RUnlock()
	var size int64
	for _, section := range sections {
		size += section.Size
	}
	f, err := s.reopenPart(id, size)
	if err != nil {
		return nil, err
	}
	w := &Writer{ctx: ctx, store: s, id: newID(), temp: s.partPath(id), large: true, part: id, file: f, size: size}
	err = s.fs.Truncate(w.temp, size) // an earlier attempt to finish the Part may have left more
	if err == nil {
		err = w.readBack(sections, copyTo)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("finish part: %w", err), f.Close())
	}
	return w, nil
}

// readBack verifies the sections and computes the checksums of the file's content.
func (w *Writer) readBack(sections []Section, copyTo io.Writer) error {
	f, err := os.Open(w.temp)
	if err != nil {
		return fmt.Errorf("read part: %w", err)
	}
	defer f.Close()
	buf := blocks.Get().(*durable.Buffer)
	defer blocks.Put(buf)
	to := io.MultiWriter(&w.sums, cmp.Or(copyTo, io.Discard))
	start := int64(0)
	for _, section := range sections {
		if _, err := io.CopyBuffer(to, ctxio.NewReader(w.ctx, newPartReader(f, start, section)), buf.Bytes); err != nil {
			return err
		}
		start += section.Size
	}
	return nil
}
