package repository

import (
	"context"
	"errors"
	"fmt"
)

// Collected is what Collect removed.
type Collected struct {
	Chunks int64
	Bytes  int64
}

// Collect removes the chunks that no backup needs any more. It works in two
// phases: first every index is replaced that names such chunks, each by one
// rename, what is left of sparse packs being copied before; then the packs that
// no index names are unlinked. Open Snapshots count as backups. It returns
// ErrBusy while a backup is being written, and may be called again whenever it
// was interrupted.
func (r *Repository) Collect(ctx context.Context) (Collected, error) {
	var done Collected
	if err := r.writable(); err != nil {
		return done, err
	}
	if !r.work.TryLock() {
		return done, ErrBusy
	}
	defer r.work.Unlock()
	live, err := r.mark(ctx)
	if err != nil {
		return done, fmt.Errorf("collect garbage: %w", err)
	}
	sessions, err := r.indexed()
	if err != nil {
		return done, err
	}
	// The sessions nothing is needed of go first: that takes no room, and
	// makes some where the disk is full.
	for _, all := range []bool{true, false} {
		for _, session := range sessions {
			if all != (len(live[session]) == 0) {
				continue
			}
			if err := r.collectSession(ctx, session, live[session], &done); err != nil {
				return done, fmt.Errorf("collect garbage: %w", err)
			}
		}
	}
	_, err = r.clean()
	return done, err
}

// bitset is a set of ordinals.
type bitset []uint64

func (b bitset) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]&(1<<(n%64)) != 0 }

func (b bitset) add(n uint32) bitset {
	for int(n/64) >= len(b) {
		b = append(b, make(bitset, len(b)+1)...)
	}
	b[n/64] |= 1 << (n % 64)
	return b
}

// mark returns the records that are needed, by session: by a manifest, an open
// Snapshot, or as what a needed overlay lies on.
func (r *Repository) mark(ctx context.Context) (map[uint32]bitset, error) {
	live := map[uint32]bitset{}
	ids, err := r.Backups()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		m, _, err := r.Manifest(id)
		if errors.Is(err, ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err // what it needs cannot be known
		}
		markManifest(live, m)
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
	for _, m := range r.pinned() {
		markManifest(live, m)
	}
	return live, r.markBases(live)
}

func markManifest(live map[uint32]bitset, m *Manifest) {
	for i := range m.Entries {
		for _, run := range m.Entries[i].Chunks {
			if run.Session == 0 {
				continue
			}
			set := live[run.Session]
			for n := range run.Count {
				set = set.add(run.First + n)
			}
			live[run.Session] = set
		}
	}
}

func (r *Repository) pinned() (all []*Manifest) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for s := range r.pins {
		all = append(all, s.Manifest)
	}
	return all
}

// markBases marks what the marked overlays lie on.
func (r *Repository) markBases(live map[uint32]bitset) error {
	var bases []Ref
	for session, set := range live {
		if err := r.openedIndex(session); err != nil {
			return err
		}
		err := r.indexOf(session).each(func(ordinal uint32, e entry) error {
			if e.base != (Ref{}) && set.has(ordinal) {
				bases = append(bases, e.base)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, base := range bases {
		live[base.Session] = live[base.Session].add(base.Ordinal)
	}
	return nil
}

// collectSession removes what is not live of one session.
func (r *Repository) collectSession(ctx context.Context, session uint32, live bitset, done *Collected) error {
	if err := r.openedIndex(session); err != nil {
		return err
	}
	x := r.indexOf(session)
	use, garbage, err := usage(x, live)
	if err != nil || garbage.Chunks == 0 {
		return err
	}
	if len(live) == 0 {
		if err := r.dropSession(session, x); err != nil {
			return err
		}
	} else if err := r.rewriteSession(ctx, x, live, use); err != nil {
		return err
	}
	done.Chunks += garbage.Chunks
	done.Bytes += garbage.Bytes
	return nil
}

// usage sums the live bytes of each pack, and all the others.
func usage(x *index, live bitset) (use map[uint32]int64, garbage Collected, err error) {
	use = map[uint32]int64{}
	err = x.each(func(ordinal uint32, e entry) error {
		if live.has(ordinal) {
			use[e.pack] += int64(e.stored)
			return nil
		}
		garbage.Chunks++
		garbage.Bytes += int64(e.stored)
		return nil
	})
	return use, garbage, err
}

// dropSession removes a session nothing is needed of: its index first.
func (r *Repository) dropSession(session uint32, x *index) error {
	packs := x.packs
	r.forgetIndex(session)
	if err := r.remove(r.path(indexName(session))); err != nil {
		return err
	}
	if err := r.syncDir(r.path(indexDir)); err != nil {
		return err
	}
	for _, p := range packs {
		if err := r.remove(r.path(packName(session, p.number))); err != nil {
			return err
		}
	}
	return nil
}

// rewriteSession replaces the session's index by one of the live records
// alone. Those of packs that are less than half live move to new packs, so that
// the old ones can go.
func (r *Repository) rewriteSession(ctx context.Context, x *index, live bitset, use map[uint32]int64) error {
	next, err := r.createIndex(x.session)
	if err != nil {
		return err
	}
	m := &mover{r: r, old: x, index: next, keep: map[uint32]bool{}}
	last := uint32(0)
	for _, p := range x.packs {
		last = max(last, p.number)
		m.keep[p.number] = use[p.number]*2 >= p.size
	}
	m.packs = newPackSet(r, x.session, last+1)
	err = m.run(ctx, live)
	if !next.published {
		return errors.Join(err, m.packs.abort(), next.abort())
	}
	r.forgetIndex(x.session)
	return err
}
