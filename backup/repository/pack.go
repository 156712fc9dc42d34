package repository

import (
	"errors"
	"fmt"
	"sync"

	"github.com/zeebo/blake3"

	"holdfast/internal/durable"
)

// packBuffers are the write buffers of packs.
var packBuffers = sync.Pool{New: func() any { return durable.NewBuffer(1 << 20) }}

// packWriter writes one pack, with direct I/O if the file system supports it.
type packWriter struct {
	r       *Repository
	name    string
	f       durable.File
	hash    *blake3.Hasher
	info    packInfo
	mode    durable.WriteMode
	buffer  *durable.Buffer
	waiting []byte // buffered content, in buffer
}

func (r *Repository) createPack(session, number uint32) (*packWriter, error) {
	buffer := packBuffers.Get().(*durable.Buffer)
	p := &packWriter{
		r: r, name: packName(session, number), hash: blake3.New(), info: packInfo{number: number},
		buffer: buffer, waiting: buffer.Bytes[:0],
	}
	var err error
	if p.f, err = r.create(r.path(p.name)); err != nil {
		return nil, fmt.Errorf("create pack: %w", err)
	}
	if err := p.write(header(magicPack, session, number)); err != nil {
		return nil, errors.Join(err, p.f.Close())
	}
	return p, nil
}

func (p *packWriter) write(b []byte) error {
	p.hash.Write(b)
	for len(b) > 0 {
		n := copy(p.waiting[len(p.waiting):cap(p.waiting)], b)
		p.waiting, b = p.waiting[:len(p.waiting)+n], b[n:]
		p.info.size += int64(n)
		if len(p.waiting) == cap(p.waiting) {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the buffer.
func (p *packWriter) flush() error {
	_, err := p.mode.Write(p.f, p.waiting, p.info.size-int64(len(p.waiting)))
	p.waiting = p.waiting[:0]
	if err != nil {
		return fmt.Errorf("write %s: %w", p.name, err)
	}
	return nil
}

// finish makes the content of the pack durable, but not its name.
func (p *packWriter) finish() error {
	err := p.flush()
	packBuffers.Put(p.buffer)
	p.buffer, p.waiting = nil, nil
	if err == nil {
		err = p.r.sync(p.f, p.name)
	}
	if err := errors.Join(err, p.f.Close()); err != nil {
		return fmt.Errorf("finish pack: %w", err)
	}
	return nil
}

// packSet is the packs of a session, written one after the other. A full pack is synced while the next is written.
type packSet struct {
	r       *Repository
	session uint32
	next    uint32 // number
	current *packWriter
	done    []packInfo
	syncs   chan error // one value for each full pack
	waiting int
}

func newPackSet(r *Repository, session, first uint32) *packSet {
	return &packSet{r: r, session: session, next: first, syncs: make(chan error, 1)}
}

// place returns the pack and offset of the next write. It starts a new pack if necessary.
func (s *packSet) place() (pack, offset uint32, err error) {
	if s.current != nil && s.current.info.size >= packSize {
		if err := s.rotate(); err != nil {
			return 0, 0, err
		}
	}
	if s.current == nil {
		if s.current, err = s.r.createPack(s.session, s.next); err != nil {
			return 0, 0, err
		}
		s.next++
	}
	return s.current.info.number, uint32(s.current.info.size), nil
}

func (s *packSet) write(b []byte) error { return s.current.write(b) }

// rotate starts to sync the current pack, after the previous one is synced.
func (s *packSet) rotate() error {
	if err := s.wait(); err != nil {
		return err
	}
	full := s.current
	copy(full.info.digest[:], full.hash.Sum(nil))
	s.done, s.current = append(s.done, full.info), nil
	s.waiting++
	go func() { s.syncs <- full.finish() }()
	return nil
}

// wait waits until all rotated packs are synced.
func (s *packSet) wait() (err error) {
	for ; s.waiting > 0; s.waiting-- {
		err = errors.Join(err, <-s.syncs)
	}
	return err
}

// finish makes all packs and their names durable.
func (s *packSet) finish() error {
	if s.current != nil {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	if err := s.wait(); err != nil {
		return err
	}
	return s.r.syncDir(s.r.path(packDir))
}

// abort closes and removes the packs.
func (s *packSet) abort() error {
	err := s.wait()
	if s.current != nil {
		err = errors.Join(err, s.current.f.Close())
	}
	for _, p := range s.done {
		err = errors.Join(err, s.r.remove(s.r.path(packName(s.session, p.number))))
	}
	if s.current != nil {
		err = errors.Join(err, s.r.remove(s.r.path(s.current.name)))
	}
	return err
}
