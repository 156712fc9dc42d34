package stream

import (
	"encoding/binary"
	"time"
)

// maxName is the most bytes that a name in a frame or catalog has.
const maxName = 4 << 10

func appendBytes[T string | []byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// decoder reads what the append functions wrote. After the first error everything is
// zero. What it returns shares the memory of its input.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = corrupt("%s is malformed", what)
	}
	d.b = nil
}

func (d *decoder) uvarint(what string) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(what)
		return 0
	}
	d.b = d.b[n:]
	return v
}

// number reads a number that is at most limit.
func (d *decoder) number(what string, limit uint64) uint64 {
	v := d.uvarint(what)
	if v > limit {
		d.fail(what)
		return 0
	}
	return v
}

func (d *decoder) fixed(what string, n int) []byte {
	if len(d.b) < n {
		d.fail(what)
		return make([]byte, n)
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32(what string) uint32 { return binary.LittleEndian.Uint32(d.fixed(what, 4)) }

func (d *decoder) uint64(what string) uint64 { return binary.LittleEndian.Uint64(d.fixed(what, 8)) }

func (d *decoder) byte(what string) byte { return d.fixed(what, 1)[0] }

func (d *decoder) hash(what string) Hash { return Hash(d.fixed(what, len(Hash{}))) }

func (d *decoder) time(what string) time.Time { return fromNanos(int64(d.uint64(what))) }

func (d *decoder) bytes(what string, limit int) []byte {
	n := d.number(what, uint64(min(limit, len(d.b))))
	return d.fixed(what, int(n))
}

func (d *decoder) string(what string) string { return string(d.bytes(what, maxName)) }

// end returns the error, which is one also when bytes are left.
func (d *decoder) end(what string) error {
	if d.err == nil && len(d.b) > 0 {
		d.fail(what)
	}
	return d.err
}

// magic reads the eight bytes that objects of this package begin with.
func (d *decoder) magic(want string) {
	head := d.fixed("the beginning", 8)
	switch {
	case d.err != nil:
	case string(head[:4]) != want:
		d.fail("the beginning")
	case head[4] != formatVersion || head[5]|head[6]|head[7] != 0:
		d.b, d.err = nil, ErrVersion
	}
}

func appendMagic(b []byte, magic string) []byte {
	return append(append(b, magic...), formatVersion, 0, 0, 0)
}

// fromNanos returns the time of a number of nanoseconds since 1970, zero for 0.
func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// nanos is the reverse of fromNanos.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
