package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// mover writes an index of the needed records of other indexes, and copies records to new packs.
type mover struct {
	r     *Repository
	index *indexWriter
	packs *packSet
	keep  map[uint32]bool // numbers of packs that stay when an index is replaced
	kept  []packInfo      // the same packs

	open *stored // the pack being read
	from packKey
	buf  []byte
}

// run writes the sessions in order, regardless of their indexes.
func (m *mover) run(ctx context.Context, from []*used) error {
	defer m.close()
	for _, s := range sourcesOf(from) {
		err := s.of(s.session, func(ref Ref, e entry) error {
			if !s.need[s.session].has(ref.Ordinal) {
				return nil
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return m.add(ref, e)
		})
		if err != nil {
			return err
		}
	}
	if err := m.packs.finish(); err != nil {
		return err
	}
	m.index.packs = append(m.kept, m.packs.done...)
	return m.index.publish()
}

// source is a session and its home.
type source struct {
	*used
	session uint32
}

// sourcesOf returns the needed sessions of some indexes in order.
func sourcesOf(from []*used) (all []source) {
	for _, u := range from {
		for session := range u.need {
			all = append(all, source{u, session})
		}
	}
	slices.SortFunc(all, func(a, b source) int { return cmp.Compare(a.session, b.session) })
	return all
}

func (m *mover) add(ref Ref, e entry) error {
	if !m.keep[e.pack] {
		err := m.move(&e)
		if errors.Is(err, ErrDamaged) {
			m.r.distrust(ref)
		}
		if err != nil {
			return err
		}
	}
	return m.index.add(ref, e.append(nil))
}

// move copies a record unchanged; its reader verifies its hash.
func (m *mover) move(e *entry) error {
	if err := m.openPack(packKey{e.index, e.pack}); err != nil {
		return err
	}
	if cap(m.buf) < int(e.stored) {
		m.buf = make([]byte, maxStored)
	}
	b := m.buf[:e.stored]
	if _, err := m.open.ReadAt(b, int64(e.offset)); err != nil {
		return fmt.Errorf("read %s: %w", packName(e.index, e.pack), err)
	}
	var err error
	if e.pack, e.offset, err = m.packs.place(); err != nil {
		return err
	}
	return m.packs.write(b)
}

func (m *mover) openPack(key packKey) (err error) {
	if m.open != nil && m.from == key {
		return nil
	}
	m.close()
	if m.open, err = m.r.openStored(packName(key.index, key.number)); err != nil {
		return fmt.Errorf("open pack: %w", err)
	}
	m.from = key
	return nil
}

func (m *mover) close() {
	if m.open != nil {
		m.open.Close()
		m.open = nil
	}
}
