package sealed

import (
	"errors"
	"fmt"
	"io"
)

// Body is bytes of a known size that can be read more than once. Every Open returns
// a reader of the same bytes from the first on, which the caller closes.
type Body interface {
	Size() int64
	Open() (io.ReadCloser, error)
}

// Seal returns the sealed object that key makes of plain under a name. Nothing is
// read before its Open; each Open reads plain again and gives the same bytes. The
// bytes of plain must never change: two plaintexts under one name and salt would
// reveal each other. A plain that has another size than it says fails the reader.
func Seal(key Key, name string, plain Body) (Body, error) {
	header := newHeader(key.number)
	s, check, err := key.derive(header[:], name)
	if err != nil {
		return nil, err
	}
	copy(header[checkOffset:], check)
	return &object{header, s, plain}, nil
}

type object struct {
	header [HeaderSize]byte
	suite  *suite
	plain  Body
}

// Size implements Body.
func (o *object) Size() int64 { return Size(o.plain.Size()) }

// Open implements Body.
func (o *object) Open() (io.ReadCloser, error) {
	plain, err := o.plain.Open()
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return &sealer{
		suite: o.suite, plain: plain, left: o.plain.Size(),
		buffer: make([]byte, 0, min(o.plain.Size(), SegmentSize)+tagSize), ready: o.header[:],
	}, nil
}

// sealer is a reader of a sealed object that it makes from the plaintext.
type sealer struct {
	suite  *suite
	plain  io.ReadCloser
	left   int64 // plaintext not yet read
	index  int64
	done   bool
	err    error
	buffer []byte
	ready  []byte // sealed and not yet returned
}

// Read implements io.Reader.
func (s *sealer) Read(p []byte) (int, error) {
	if len(s.ready) == 0 && s.err == nil {
		s.ready, s.err = s.next()
	}
	if len(s.ready) == 0 {
		return 0, s.err
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// next returns the next sealed segment.
func (s *sealer) next() ([]byte, error) {
	if s.done {
		return nil, io.EOF
	}
	plain := s.buffer[:min(s.left, SegmentSize)]
	if _, err := io.ReadFull(s.plain, plain); err != nil {
		return nil, fmt.Errorf("seal: the plaintext ends %d bytes early: %w", s.left, noEOF(err))
	}
	s.left -= int64(len(plain))
	s.done = s.left == 0
	if s.done {
		if err := atEnd(s.plain); errors.Is(err, ErrCorrupt) {
			return nil, errors.New("seal: the plaintext is longer than its size")
		} else if err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
	}
	segment := s.suite.seal(plain, s.index, s.done)
	s.index++
	return segment, nil
}

// Close implements io.Closer.
func (s *sealer) Close() error { return s.plain.Close() }

// noEOF is for an end that is too early, which must not look like the end.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
