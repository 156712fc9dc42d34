package objectstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// bodyError is an error of a caller's Body, which is no fault of the store.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "read the body: " + e.err.Error() }

func (e *bodyError) Unwrap() error { return e.err }

var errBodySize = errors.New("the body has another size than it says")

// sized is a reader of a Body that must have a certain size. The HTTP client may
// still read it when the request has ended, until end.
type sized struct {
	mu   sync.Mutex
	r    io.Reader
	left int64
	err  error // a *bodyError, once there was one
	over bool
}

func newSized(r io.Reader, size int64) *sized { return &sized{r: r, left: size} }

// Read implements io.Reader. It ends with the size.
func (s *sized) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.over {
		return 0, io.EOF
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if err == io.EOF && s.left > 0 {
		err = errBodySize
	}
	if err != nil && err != io.EOF {
		s.err = &bodyError{err}
		return n, s.err
	}
	return n, err
}

// end lets nobody read any more, and returns the error of the body.
func (s *sized) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.err
}

// finish returns an error when the body goes on after its size.
func (s *sized) finish() error {
	var one [1]byte
	_, err := io.ReadFull(s.r, one[:])
	switch {
	case err == io.EOF:
		return nil
	case err == nil:
		err = errBodySize
	}
	s.err = &bodyError{err}
	return s.err
}

// checkCreate refuses what no store accepts.
func checkCreate(body Body, opts CreateOptions) error {
	switch r := opts.Retention; {
	case body.Size() < 0 || body.Size() > MaxSize:
		return fmt.Errorf("%w: an object has at most %d bytes, not %d", ErrUnsupported, MaxSize, body.Size())
	case r != (Retention{}):
		return r.check()
	}
	return nil
}

// check refuses a retention that is not complete.
func (r Retention) check() error {
	if r.Until.IsZero() || (r.Mode != Governance && r.Mode != Compliance) {
		return fmt.Errorf("%w: a retention needs a mode and a time", ErrUnsupported)
	}
	return nil
}

// within returns the length of a range of an object of size bytes.
func (r Range) within(size int64) (int64, error) {
	length := r.Length
	if length == 0 {
		length = size - r.Offset
	}
	if r.Offset < 0 || length < 0 || (r.Offset > 0 && length == 0) || length > size-r.Offset {
		return 0, fmt.Errorf("%w: it has %d bytes and not those from %d on that are wanted, %d", ErrCorrupt, size, r.Offset, r.Length)
	}
	return length, nil
}

// Bytes returns the Body of a text or of bytes that do not change.
func Bytes[T string | []byte](b T) Body { return raw(b) }

type raw []byte

// Size implements Body.
func (r raw) Size() int64 { return int64(len(r)) }

// Open implements Body.
func (r raw) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r)), nil }
