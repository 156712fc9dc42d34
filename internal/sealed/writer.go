package sealed

import (
	"errors"
	"fmt"
	"io"
)

// Writer seals what is written to it. The object is complete when Close returns nil;
// without Close, readers refuse it as truncated.
type Writer struct {
	dst    io.Writer
	suite  *suite
	header []byte // until it is written
	index  int64
	buffer []byte // plaintext that waits: the last segment is sealed differently
	err    error
}

// NewWriter returns a Writer of the object of that name to dst. It does not close
// dst.
func NewWriter(dst io.Writer, key Key, name string) (*Writer, error) {
	header := newHeader(key.number)
	s, check, err := key.derive(header[:], name)
	if err != nil {
		return nil, err
	}
	copy(header[checkOffset:], check)
	return &Writer{dst: dst, suite: s, header: header[:], buffer: make([]byte, 0, sealedSegment)}, nil
}

// Write implements io.Writer. After an error, all further calls return it.
func (w *Writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && w.err == nil {
		if len(w.buffer) == SegmentSize {
			w.flush(false)
			continue
		}
		n := min(len(p), SegmentSize-len(w.buffer))
		w.buffer = append(w.buffer, p[:n]...)
		p, written = p[n:], written+n
	}
	return written, w.err
}

// Close writes the last segment. It returns the first error of the Writer, and an
// error when called again.
func (w *Writer) Close() error {
	w.flush(true)
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("seal: the writer is closed")
	return nil
}

// flush seals and writes what waits.
func (w *Writer) flush(last bool) {
	for _, part := range [][]byte{w.header, w.suite.seal(w.buffer, w.index, last)} {
		if w.err == nil {
			if _, err := w.dst.Write(part); err != nil {
				w.err = fmt.Errorf("seal: %w", err)
			}
		}
	}
	w.header, w.buffer = nil, w.buffer[:0]
	w.index++
}
