package repository

import (
	"context"
	"errors"
	"fmt"
)

// Collected counts what Collect removed.
type Collected struct {
	Chunks int64
	Bytes  int64
}

const (
	// An index with less than smallIndex bytes of needed records is small. manySmall small indexes are merged, so
	// that small daily backups leave a few files, not one each.
	smallIndex = packSize / 4
	manySmall  = 32
)

// Collect removes the chunks that no backup needs, and merges small indexes with their packs. It works in two
// phases. First it replaces every index that names such chunks, each by one rename, after copying the needed records
// of sparse packs. Then it removes merged indexes and packs that no index names. Open Snapshots count as backups. It
// returns ErrBusy while a backup is being written, and may be called again after an interruption.
func (r *Repository) Collect(ctx context.Context) (Collected, error) {
	if err := r.writable(); err != nil {
		return Collected{}, err
	}
	if !r.removal.TryLock() {
		return Collected{}, ErrBusy
	}
	defer r.removal.Unlock()
	c := &collection{r: r, ctx: ctx}
	if err := c.run(); err != nil {
		return c.done, fmt.Errorf("collect garbage: %w", err)
	}
	_, err := r.clean()
	return c.done, err
}

// collection is a running Collect.
type collection struct {
	r    *Repository
	ctx  context.Context
	live map[uint32]bitset // by session
	done Collected
}

// used is an index with needed records.
type used struct {
	*index
	need    map[uint32]bitset // by session
	packs   map[uint32]int64  // needed bytes by pack
	bytes   int64             // total of packs
	garbage Collected
}

func (c *collection) run() error {
	if _, err := c.r.clean(); err != nil { // remove merged indexes before the ones they were merged into
		return err
	}
	all, unreadable := c.r.opened()
	if err := errors.Join(unreadable...); err != nil { // it is unknown which packs belong to it
		return err
	}
	if err := c.mark(); err != nil {
		return err
	}
	// Remove unneeded indexes first: this requires no free space, and creates some on a full disk.
	kept, err := c.dropUnneeded(all)
	if err != nil {
		return err
	}
	var small []*used
	for _, u := range kept {
		if u.bytes < smallIndex {
			small = append(small, u)
		} else if err := c.rewrite(u); err != nil {
			return err
		}
	}
	if len(small) >= c.r.many {
		return c.merge(small)
	}
	for _, u := range small {
		if err := c.rewrite(u); err != nil {
			return err
		}
	}
	return nil
}

// dropUnneeded removes the indexes without needed records, and returns the others.
func (c *collection) dropUnneeded(all []*index) (kept []*used, err error) {
	for _, x := range all {
		u, err := c.usage(x)
		if err != nil {
			return nil, err
		}
		if len(u.need) > 0 {
			kept = append(kept, u)
			continue
		}
		if err := c.r.dropIndex(x); err != nil {
			return nil, err
		}
		c.count(u)
	}
	return kept, nil
}

// usage sums up the needed bytes of each pack of an index, and the garbage.
func (c *collection) usage(x *index) (*used, error) {
	u := &used{index: x, need: map[uint32]bitset{}, packs: map[uint32]int64{}}
	for _, session := range x.sessions() {
		if live := c.live[session]; len(live) > 0 {
			u.need[session] = live
		}
	}
	return u, x.each(func(ref Ref, e entry) error {
		if u.need[ref.Session].has(ref.Ordinal) {
			u.packs[e.pack] += int64(e.stored)
			u.bytes += int64(e.stored)
			return nil
		}
		u.garbage.Chunks++
		u.garbage.Bytes += int64(e.stored)
		return nil
	})
}

func (c *collection) count(u *used) {
	c.done.Chunks += u.garbage.Chunks
	c.done.Bytes += u.garbage.Bytes
}

// rewrite replaces an index that names garbage. It moves the records of packs that are less than half needed to new
// packs, so that the old packs can be removed.
func (c *collection) rewrite(u *used) error {
	if u.garbage.Chunks == 0 {
		return nil
	}
	m := &mover{r: c.r, keep: map[uint32]bool{}}
	last := uint32(0)
	for _, p := range u.index.packs {
		last = max(last, p.number)
		if u.packs[p.number]*2 >= p.size {
			m.keep[p.number], m.kept = true, append(m.kept, p)
		}
	}
	return c.move(m, u.number, last+1, u)
}

// merge moves the needed records of small indexes to a new index with its own packs. That index becomes the home of
// their sessions; clean removes the others.
func (c *collection) merge(small []*used) error {
	return c.move(&mover{r: c.r}, c.r.nextSession(), 0, small...)
}

// move publishes an index with that number and all needed records of other indexes.
func (c *collection) move(m *mover, number, firstPack uint32, from ...*used) (err error) {
	if m.index, err = c.r.createIndex(number); err != nil {
		return err
	}
	m.packs = newPackSet(c.r, number, firstPack)
	err = m.run(c.ctx, from)
	if !m.index.published {
		return errors.Join(err, m.packs.abort(), m.index.abort())
	}
	for _, u := range from {
		c.r.forgetIndex(u.number)
		c.count(u)
	}
	return err
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

// mark finds the needed records: those that a manifest or an open Snapshot names, and the bases of needed overlays.
func (c *collection) mark() error {
	c.live = map[uint32]bitset{}
	ids, err := c.r.Backups()
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, _, err := c.r.Manifest(id)
		if errors.Is(err, ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err // its needs are unknown
		}
		markManifest(c.live, m)
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
	}
	for _, m := range c.r.pinned() {
		markManifest(c.live, m)
	}
	return c.markBases()
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

// CheckNeeded returns an error if an index is missing that has records which a backup or an open Snapshot needs, or if that cannot be
// told. It returns ErrBusy while Collect or Clean runs.
func (r *Repository) CheckNeeded(ctx context.Context) error {
	if !r.removal.TryRLock() {
		return ErrBusy
	}
	defer r.removal.RUnlock()
	_, unreadable := r.opened()
	if err := errors.Join(unreadable...); err != nil {
		return err
	}
	return r.checkNeeded(ctx)
}

// checkNeeded is CheckNeeded for a caller that holds r.removal and has opened all indexes.
func (r *Repository) checkNeeded(ctx context.Context) error {
	return (&collection{r: r, ctx: ctx}).mark()
}

// markBases marks the bases of marked overlays.
func (c *collection) markBases() error {
	var bases []Ref
	for session, set := range c.live {
		if err := c.r.locate(session); err != nil {
			return err
		}
		err := c.r.homeOf(session).of(session, func(ref Ref, e entry) error {
			if e.base != (Ref{}) && set.has(ref.Ordinal) {
				bases = append(bases, e.base)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, base := range bases {
		if err := c.r.locate(base.Session); err != nil {
			return err
		}
		c.live[base.Session] = c.live[base.Session].add(base.Ordinal)
	}
	return nil
}

// dropIndex removes an index without needed records, and then its packs.
func (r *Repository) dropIndex(x *index) error {
	r.forgetIndex(x.number)
	if err := r.remove(r.path(x.name)); err != nil {
		return err
	}
	if err := r.syncDir(r.path(indexDir)); err != nil {
		return err
	}
	for _, p := range x.packs {
		if err := r.remove(r.path(packName(x.number, p.number))); err != nil {
			return err
		}
	}
	return nil
}
