package stream

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/zeebo/blake3"
)

const (
	logMagic = "HFLG"
	// maxLog is the size of encoded frames at which a log object is cut.
	maxLog = 4 << 20
	// maxLogPlain is the size of the encoded frames of any log object.
	maxLogPlain = maxLog + MaxFrame
	logHead     = 8 + 3*8 + 32 + 2*4
)

// logHeader is what a log object says of itself.
type logHeader struct {
	seq         uint64
	first, last time.Time // of the oldest and the newest frame
	previous    Hash      // of the object before
	frames      int
}

// logBuilder encodes the frames of one log object.
type logBuilder struct {
	header logHeader
	plain  []byte
}

// add appends a frame. It refuses one that would not be decoded.
func (l *logBuilder) add(f Frame) error {
	start := len(l.plain)
	l.plain = binary.LittleEndian.AppendUint64(append(l.plain, f.Body.kind()), uint64(nanos(f.Time)))
	at := len(l.plain)
	l.plain = f.Body.append(append(l.plain, 0, 0, 0, 0))
	size := len(l.plain) - at - 4
	_, err := decodeBody(f.Body.kind(), l.plain[at+4:])
	if err == nil && (size > MaxFrame || len(l.plain) > maxLogPlain) {
		err = fmt.Errorf("it has %d bytes", size)
	}
	if err != nil {
		l.plain = l.plain[:start]
		return fmt.Errorf("a frame of kind %d: %w", f.Body.kind(), err)
	}
	binary.LittleEndian.PutUint32(l.plain[at:], uint32(size))
	l.header.add(f.Time)
	return nil
}

func (h *logHeader) add(at time.Time) {
	if h.frames == 0 || at.Before(h.first) {
		h.first = at
	}
	if at.After(h.last) {
		h.last = at
	}
	h.frames++
}

// finish appends the object to b, which is empty, and returns it and its hash.
func (l *logBuilder) finish(c *compressor, b []byte) ([]byte, Hash) {
	h := l.header
	b = appendMagic(b, logMagic)
	b = binary.LittleEndian.AppendUint64(b, h.seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(nanos(h.first)))
	b = binary.LittleEndian.AppendUint64(b, uint64(nanos(h.last)))
	b = append(b, h.previous[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.frames))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.plain)))
	b = c.compress(b, l.plain)
	return b, blake3.Sum256(b)
}

// decodeLog reads a log object. What it allocates is bounded by maxLogPlain and a
// small multiple of it for the frames.
func decodeLog(c *compressor, b []byte) (logHeader, []Frame, error) {
	d := &decoder{b: b}
	d.magic(logMagic)
	h := logHeader{
		seq: d.uint64("a number"), first: d.time("a time"), last: d.time("a time"),
		previous: d.hash("a hash"), frames: int(d.uint32("a count")),
	}
	size := int(d.uint32("a size"))
	if d.err == nil && (size > maxLogPlain || h.frames > size/13) {
		d.fail("the header")
	}
	if d.err != nil {
		return h, nil, d.err
	}
	plain, err := c.expand(d.b, size)
	if err != nil {
		return h, nil, err
	}
	frames, err := decodeFrames(plain, h.frames)
	return h, frames, err
}

func decodeFrames(plain []byte, n int) ([]Frame, error) {
	d := &decoder{b: plain}
	frames := make([]Frame, 0, min(n, 1<<16))
	for range n {
		kind, at := d.byte("a frame"), d.time("a frame")
		body := d.fixed("a frame", int(min(d.uint32("a frame"), MaxFrame+1)))
		if d.err != nil {
			return nil, d.err
		}
		f, err := decodeBody(kind, body)
		if err != nil {
			return nil, err
		}
		frames = append(frames, Frame{Time: at, Body: f})
	}
	return frames, d.end("the last frame")
}
