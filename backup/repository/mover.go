package repository

import (
	"context"
	"fmt"
	"os"
)

// mover writes a session's index anew, and moves records out of sparse packs.
type mover struct {
	r     *Repository
	old   *index
	index *indexWriter
	packs *packSet
	keep  map[uint32]bool // packs that stay

	open   *os.File // the pack moved from
	number uint32
	buf    []byte
}

func (m *mover) run(ctx context.Context, live bitset) error {
	defer m.close()
	err := m.old.each(func(ordinal uint32, e entry) error {
		if !live.has(ordinal) {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !m.keep[e.pack] {
			if err := m.move(&e); err != nil {
				return err
			}
		}
		return m.index.add(ordinal, e.append(nil))
	})
	if err != nil {
		return err
	}
	if err := m.packs.finish(); err != nil {
		return err
	}
	for _, p := range m.old.packs {
		if m.keep[p.number] {
			m.index.packs = append(m.index.packs, p)
		}
	}
	m.index.packs = append(m.index.packs, m.packs.done...)
	return m.index.publish()
}

// move copies a record as it is: whoever reads it checks its hash.
func (m *mover) move(e *entry) error {
	if err := m.openPack(e.pack); err != nil {
		return err
	}
	if cap(m.buf) < int(e.stored) {
		m.buf = make([]byte, maxStored)
	}
	b := m.buf[:e.stored]
	if _, err := m.open.ReadAt(b, int64(e.offset)); err != nil {
		return fmt.Errorf("read %s: %w", packName(m.old.session, e.pack), err)
	}
	var err error
	if e.pack, e.offset, err = m.packs.place(); err != nil {
		return err
	}
	return m.packs.write(b)
}

func (m *mover) openPack(number uint32) (err error) {
	if m.open != nil && m.number == number {
		return nil
	}
	m.close()
	if m.open, err = os.Open(m.r.path(packName(m.old.session, number))); err != nil {
		return fmt.Errorf("open pack: %w", err)
	}
	m.number = number
	return nil
}

func (m *mover) close() {
	if m.open != nil {
		m.open.Close()
		m.open = nil
	}
}
