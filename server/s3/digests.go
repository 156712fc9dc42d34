package s3

import (
	"crypto/md5"
	"hash"
	"sync"

	md5simd "github.com/minio/md5-simd"
)

const (
	// minParallel is the size in bytes of the smallest body whose MD5 is computed beside others'.
	minParallel = 1 << 20
	// maxParallel is the maximum number of bodies whose MD5s are computed beside each other: md5simd's lanes, a constant
	// that it has on amd64 alone.
	maxParallel = 16
)

// digests computes the MD5s of large bodies. MD5 is by far the most expensive part of storing them. One goroutine computes
// the MD5s of all bodies that arrive at the same time, eight per instruction, while the requests write what they have
// read. It exists while there are such bodies.
type digests struct {
	mu     sync.Mutex
	server md5simd.Server // nil while nothing is in use
	free   []*stream
	used   int
}

// stream is a hash.Hash for one of several bodies. It hands over whole blocks, because others cost as much.
type stream struct {
	md5simd.Hasher
	begun []byte // of a block
}

// streamBlock is the size of a block in bytes, as md5simd computes them.
const streamBlock = 32 << 10

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 {
		if whole := len(p) - len(p)%streamBlock; len(s.begun) == 0 && whole > 0 {
			_, _ = s.Hasher.Write(p[:whole]) // never fails while it is open
			p = p[whole:]
			continue
		}
		n := min(len(p), streamBlock-len(s.begun))
		s.begun = append(s.begun, p[:n]...)
		p = p[n:]
		if len(s.begun) == streamBlock {
			s.flush()
		}
	}
	return size, nil
}

func (s *stream) flush() {
	_, _ = s.Hasher.Write(s.begun)
	s.begun = s.begun[:0]
}

// Sum implements hash.Hash.
func (s *stream) Sum(b []byte) []byte {
	s.flush()
	return s.Hasher.Sum(b)
}

// Reset implements hash.Hash.
func (s *stream) Reset() {
	s.begun = s.begun[:0]
	s.Hasher.Reset()
}

// get returns a hash for a body of that many bytes, and what gives it back.
func (d *digests) get(size int64) (h hash.Hash, release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size < minParallel || d.used == maxParallel {
		return md5.New(), func() {}
	}
	if d.server == nil {
		d.server = md5simd.NewServer()
	}
	d.used++
	var s *stream
	if last := len(d.free) - 1; last >= 0 { // the server never forgets one that is closed, so they are used again
		s, d.free = d.free[last], d.free[:last]
	} else {
		s = &stream{d.server.NewHash(), make([]byte, 0, streamBlock)}
	}
	return s, func() { d.put(s) }
}

func (d *digests) put(s *stream) {
	s.Reset()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, s)
	if d.used--; d.used > 0 {
		return
	}
	for _, s := range d.free {
		s.Close()
	}
	d.server.Close()
	d.server, d.free = nil, nil
}
