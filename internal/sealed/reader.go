package sealed

import (
	"errors"
	"fmt"
	"io"
)

// Opener decrypts one object, all of it or a range.
type Opener struct {
	suite *suite
	plain int64
}

// NewOpener returns an Opener for the object of that name from its header, its first
// HeaderSize bytes, and its sealed size. A wrong size is noticed when the last
// segment is read. The error wraps ErrCorrupt, ErrMismatch, ErrNoKey or ErrVersion.
func NewOpener(header []byte, sealedSize int64, keys *Ring, name string) (*Opener, error) {
	number, err := keyNumber(header)
	if err != nil {
		return nil, err
	}
	plain, err := PlainSize(sealedSize)
	if err != nil {
		return nil, err
	}
	key, err := keys.key(number)
	if err != nil {
		return nil, err
	}
	s, check, err := key.derive(header, name)
	if err != nil {
		return nil, err
	}
	if !sameCheck(check, header[checkOffset:]) {
		return nil, fmt.Errorf("%w: it was renamed or changed, or key %d is another one", ErrMismatch, number)
	}
	return &Opener{s, plain}, nil
}

// Size returns the size of the plaintext.
func (o *Opener) Size() int64 { return o.plain }

// Range returns the range of the sealed object that Reader needs for length bytes of
// plaintext from offset on: whole segments. The plaintext's range lies within Size.
func (o *Opener) Range(offset, length int64) (sealedOffset, sealedLength int64) {
	first, end := o.span(offset, length)
	sealedOffset = HeaderSize + first*sealedSegment
	return sealedOffset, min(HeaderSize+end*sealedSegment, Size(o.plain)) - sealedOffset
}

// span returns the first segment of a range and the one after its last. An empty
// range has one segment too, so that it is authenticated.
func (o *Opener) span(offset, length int64) (first, end int64) {
	first = min(offset/SegmentSize, segments(o.plain)-1)
	return first, max(first+1, (offset+length+SegmentSize-1)/SegmentSize)
}

// Reader returns a reader of length bytes of plaintext from offset on. src gives the
// bytes of Range(offset, length) and then ends. The reader returns only bytes that
// are authentic; its error wraps ErrCorrupt or is one of src.
func (o *Opener) Reader(src io.Reader, offset, length int64) io.Reader {
	first, end := o.span(offset, length)
	return &reader{
		opener: o, src: src, index: first, end: end,
		skip: offset - first*SegmentSize, left: length,
		buffer: make([]byte, min(o.plain, SegmentSize)+tagSize),
	}
}

// NewReader returns a reader of the plaintext of the object of that name. src gives
// the sealedSize bytes of the object, header included, and then ends. The errors are
// those of NewOpener and Opener.Reader.
func NewReader(src io.Reader, sealedSize int64, keys *Ring, name string) (io.Reader, error) {
	header := make([]byte, HeaderSize)
	if _, err := io.ReadFull(src, header); err != nil {
		return nil, truncated(err)
	}
	o, err := NewOpener(header, sealedSize, keys, name)
	if err != nil {
		return nil, err
	}
	return o.Reader(src, 0, o.Size()), nil
}

type reader struct {
	opener *Opener
	src    io.Reader
	index  int64 // the next segment
	end    int64 // the one not to read any more
	skip   int64 // bytes of the first segment's plaintext before the range
	left   int64 // bytes of the range not yet returned
	buffer []byte
	ready  []byte
	err    error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(r.ready) == 0 && r.err == nil {
		r.ready, r.err = r.next()
	}
	if len(r.ready) == 0 {
		return 0, r.err
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// next returns the plaintext of the next segment that lies in the range. The last
// one is returned after src has ended as it should.
func (r *reader) next() ([]byte, error) {
	if r.index == r.end {
		return nil, io.EOF
	}
	sealed, last := r.buffer, false
	if total := segments(r.opener.plain); r.index == total-1 {
		sealed, last = r.buffer[:r.opener.plain-(total-1)*SegmentSize+tagSize], true
	}
	if _, err := io.ReadFull(r.src, sealed); err != nil {
		return nil, truncated(err)
	}
	plain, err := r.opener.suite.open(sealed, r.index, last)
	if err != nil {
		return nil, err
	}
	r.index++
	if r.index == r.end {
		if err := atEnd(r.src); err != nil {
			return nil, err
		}
	}
	plain = plain[r.skip:]
	plain = plain[:min(int64(len(plain)), r.left)]
	r.skip, r.left = 0, r.left-int64(len(plain))
	if len(plain) == 0 { // an empty range
		return nil, io.EOF
	}
	return plain, nil
}

// atEnd returns ErrCorrupt when src has more bytes.
func atEnd(src io.Reader) error {
	var one [1]byte
	switch _, err := io.ReadFull(src, one[:]); {
	case err == nil:
		return fmt.Errorf("%w: bytes follow its end", ErrCorrupt)
	case err != io.EOF:
		return err
	}
	return nil
}

// truncated turns an early end into ErrCorrupt.
func truncated(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is truncated", ErrCorrupt)
	}
	return err
}
