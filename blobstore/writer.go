package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"syscall"

	"holdfast/internal/durable"
)

// Writer writes one blob. It is not safe for concurrent use. Commit, Publish or Abort ends it; Abort is usually
// deferred right after Create.
type Writer struct {
	ctx   context.Context
	store *Store
	small []byte       // the bytes while there is no file
	array *smallBuffer // of small, from the pool; nil before the first byte and after the last use
	large bool         // there is a file
	id    string       // of the file
	temp  string       // its path until it is published
	part  string       // id of the Part it was made from, which remains until it is published; "" for none
	file  durable.File // nil before it exists and after it is closed
	mode  durable.WriteMode
	sums  blockSums
	size  int64
	// secured is the Ref of the file once its bytes and name are durable.
	secured Ref
	err     error // the reason it ended; errEnded after Commit, Publish or Abort
}

var errEnded = errors.New("blob writer has ended")

// Create begins a blob, which is not visible before Commit or Publish. When ctx ends, these and Write fail with its
// cause. The caller must end the Writer.
func (s *Store) Create(ctx context.Context) (*Writer, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("create blob: %w", err)
	}
	defer s.life.RUnlock()
	if err := s.writable(); err != nil {
		return nil, err
	}
	return &Writer{ctx: ctx, store: s}, nil
}

// Write implements io.Writer. After an error, such as a full disk, the blob is
// gone and its space is free again; other blobs are not affected.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := context.Cause(w.ctx); err != nil {
		return 0, w.abandon(fmt.Errorf("write blob: %w", err))
	}
	if w.secured != "" {
		return 0, errEnded
	}
	n, err := w.write(p)
	w.size += int64(n)
	_, _ = w.sums.Write(p[:n]) // never fails
	if err != nil {
		return n, w.abandon(fmt.Errorf("write blob: %w", err))
	}
	return n, nil
}

// write keeps a small blob in memory.
func (w *Writer) write(p []byte) (int, error) {
	if !w.large && len(w.small)+len(p) <= w.store.inline {
		if w.array == nil {
			w.array = smallBuffers.Get().(*smallBuffer)
			w.small = w.array[:0]
		}
		w.small = append(w.small, p...)
		return len(p), nil
	}
	if err := w.spill(); err != nil {
		return 0, err
	}
	return w.mode.Write(w.file, p, w.size)
}

// forget returns the memory of a small blob to the pool.
func (w *Writer) forget() {
	if w.array != nil {
		smallBuffers.Put(w.array)
	}
	w.array, w.small = nil, nil
}

// smallBuffer has room for a small blob and one byte more, which shows that a blob is not small.
type smallBuffer [defaultInline + 1]byte

// smallBuffers is a pool. With this pool and those of records and signatures, uploads of 1 KiB by 32 clients are 1.16
// to 1.69 times as fast (docs/decisions/0010-tricks.md).
var smallBuffers = sync.Pool{New: func() any { return new(smallBuffer) }}

// ReadFrom implements io.ReaderFrom. It reads whole blocks, so that larger blobs are written with direct I/O and do
// not evict pages that are read again. Small blobs need no block. An error of r does not end the Writer.
func (w *Writer) ReadFrom(r io.Reader) (size int64, err error) {
	beginning := smallBuffers.Get().(*smallBuffer)
	n, readErr := fill(beginning[:], r)
	if readErr != nil {
		defer smallBuffers.Put(beginning)
		return w.writeRead(beginning[:n], readErr)
	}
	block := blocks.Get().(*durable.Buffer)
	defer blocks.Put(block)
	n = copy(block.Bytes, beginning[:])
	smallBuffers.Put(beginning)
	for {
		more, readErr := fill(block.Bytes[n:], r)
		written, err := w.writeRead(block.Bytes[:n+more], readErr)
		size += written
		if err != nil || readErr != nil {
			return size, err
		}
		n = 0
	}
}

// writeRead writes p, unless err says that reading it failed.
func (w *Writer) writeRead(p []byte, err error) (int64, error) {
	if err != nil && err != io.EOF {
		return 0, err
	}
	n, err := w.Write(p)
	return int64(n), err
}

// fill reads until b is full or an error occurs, which is io.EOF at the end of r.
func fill(b []byte, r io.Reader) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = r.Read(b[n:])
		n += more
	}
	return n, err
}

// spill moves the blob from memory to a file.
func (w *Writer) spill() (err error) {
	if w.large {
		return nil
	}
	w.id = newID()
	w.temp = filepath.Join(w.store.incoming, w.id)
	if w.file, err = w.store.fs.Create(w.temp); err != nil {
		return err
	}
	w.large = true
	_, err = w.file.Write(w.small)
	w.forget()
	return err
}

// CRC32C returns the CRC-32C (Castagnoli) of the bytes written so far.
func (w *Writer) CRC32C() uint32 { return w.sums.total }

// Size returns the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Commit makes the blob a durable file and returns its Ref and its size in bytes. After an error the blob does not
// exist, and Commit must not be called again.
func (w *Writer) Commit() (Ref, int64, error) {
	if w.err != nil {
		return "", 0, w.err
	}
	if err := w.spill(); err != nil {
		return "", 0, w.abandon(fmt.Errorf("write blob: %w", err))
	}
	ref, err := w.Secure()
	if err != nil {
		return "", 0, err
	}
	w.end()
	return ref, w.size, nil
}

// end ends a Writer whose blob exists, and removes the Part it was made from.
func (w *Writer) end() {
	w.err = errEnded
	w.forget()
	if w.part != "" {
		_ = w.store.RemovePart(w.part) // the blob exists regardless; Parts lists a remaining Part
	}
}

func (w *Writer) commit() (Ref, error) {
	if err := w.store.enter(w.ctx); err != nil {
		return "", fmt.Errorf("commit blob: %w", err)
	}
	defer w.store.life.RUnlock()
	if err := w.syncBytes(); err != nil {
		return "", err
	}
	return w.publish()
}

// syncBytes appends the checksums to the file, then syncs and closes it.
func (w *Writer) syncBytes() error {
	if err := w.mode.Buffered(w.file); err != nil {
		return fmt.Errorf("write blob: %w", err)
	}
	if _, err := w.file.WriteAt(w.sums.trailer(w.size), w.size); err != nil {
		return fmt.Errorf("write blob: %w", err)
	}
	if err := w.store.syncFile(w.file); err != nil {
		return fmt.Errorf("sync blob: %w", err)
	}
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return fmt.Errorf("close blob: %w", err)
	}
	return nil
}

// publish durably gives the synced file its final name. A Part also keeps its own name.
func (w *Writer) publish() (Ref, error) {
	s, name := w.store, w.store.fs.Rename
	if w.part != "" {
		name = s.fs.Link
	}
	d, err := s.layout.place(w.id)
	if err != nil {
		return "", err
	}
	target := filepath.Join(d.path, w.id)
	if err := name(w.temp, target); err != nil {
		return "", fmt.Errorf("publish blob: %w", err)
	}
	if err := d.sync(); err != nil {
		return "", errors.Join(err, s.fs.Remove(target))
	}
	s.local.Add(fileSize(w.size))
	return makeRef(d.number, w.id), nil
}

// Abort ends the Writer without a blob. After Commit or another Abort it does nothing. The next Open removes files
// that Abort cannot remove.
func (w *Writer) Abort() error {
	if w.err != nil {
		return nil
	}
	w.err = errEnded
	return w.discard()
}

// abandon ends the Writer because of err, and returns err.
func (w *Writer) abandon(err error) error {
	w.err = err
	return errors.Join(err, w.discard())
}

// discard closes and removes the file, if any.
func (w *Writer) discard() error {
	w.forget()
	if w.secured != "" {
		return w.store.Remove(w.secured)
	}
	if !w.large {
		return nil
	}
	var closeErr error
	if w.file != nil {
		closeErr = w.file.Close()
		w.file = nil
	}
	var err error
	if w.part == "" {
		err = w.store.fs.Remove(w.temp)
	}
	if errors.Is(err, syscall.ENOENT) { // it was renamed
		err = nil
	}
	if err := errors.Join(closeErr, err); err != nil {
		return fmt.Errorf("remove unfinished blob: %w", err)
	}
	return nil
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
