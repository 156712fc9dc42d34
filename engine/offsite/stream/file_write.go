package stream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"holdfast/internal/sealed"
)

// partMemory is what sending a part takes, whatever its size.
const partMemory = 512 << 10

// Content is bytes that do not change. It is read more than once, by several readers
// at a time.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Store stores a file and returns its reference. It repeats what the store makes fail
// for as long as ctx lasts. An error of the content ends it; what was stored until
// then is garbage that a Prune removes.
func (w *Writer) Store(ctx context.Context, content Content) (Reference, error) {
	ctx, cancel := w.both(ctx)
	defer cancel()
	ref, err := w.newReference(ctx, content)
	if err != nil {
		return Reference{}, err
	}
	if err := w.storeParts(ctx, ref, content); err != nil {
		return Reference{}, fmt.Errorf("store a file of %d bytes: %w", ref.Size, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Files++
	w.counts.FileBytes += ref.Size
	return ref, nil
}

func (w *Writer) newReference(ctx context.Context, content Content) (Reference, error) {
	ref := Reference{Epoch: w.claim.Epoch, Size: content.Size()}
	if ref.Size > maxFile {
		return ref, fmt.Errorf("store a file: %d bytes are too many", ref.Size)
	}
	var err error
	if ref.Hash, err = hashOfBody(ctx, section{content, 0, ref.Size}); err != nil {
		return ref, fmt.Errorf("store a file: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastFile++
	ref.ID = w.lastFile
	return ref, nil
}

// storeParts stores several parts at a time.
func (w *Writer) storeParts(ctx context.Context, ref Reference, content Content) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	for part := range ref.parts() {
		if w.acquirePart(ctx) != nil {
			break
		}
		parts.Go(func() {
			defer w.releasePart()
			body := section{content, part * PartSize, ref.partSize(part)}
			if err := w.put(ctx, ref.partKey(part), body); err != nil {
				cancel(err)
			}
		})
	}
	parts.Wait()
	return context.Cause(ctx)
}

func (w *Writer) acquirePart(ctx context.Context) error {
	select {
	case w.parts <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := w.budget.take(ctx, partMemory); err != nil {
		<-w.parts
		return err
	}
	return nil
}

func (w *Writer) releasePart() {
	w.budget.give(partMemory)
	<-w.parts
}

// section is a part of a Content as a sealed.Body.
type section struct {
	content io.ReaderAt
	at, n   int64
}

var _ sealed.Body = section{}

func (s section) Size() int64 { return s.n }

func (s section) Open() (io.ReadCloser, error) {
	return io.NopCloser(&sectionReader{io.NewSectionReader(s.content, s.at, s.n), s.n}), nil
}

// sectionReader returns errors of the content as such, and one that ends early too.
type sectionReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (s *sectionReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.left -= int64(n)
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		err = &contentError{err}
	}
	return n, err
}

// storeBytes stores a file that is in memory.
func (w *Writer) storeBytes(ctx context.Context, b []byte) (Reference, error) {
	ref, err := w.newReference(ctx, bytes.NewReader(b))
	if err == nil {
		err = w.put(ctx, ref.partKey(0), small(b))
	}
	return ref, err
}
