package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/objectstore"
)

// Grace is how old an object must be before Prune deletes it, however short the
// retention is: a file that is being stored is not referenced yet.
const Grace = 7 * 24 * time.Hour

// MaxSkew is how much the clocks of the store and of this machine may differ for a prune.
const MaxSkew = time.Hour

// PrunePlan is what can be deleted.
type PrunePlan struct {
	Points  []string // keys, oldest first within an epoch
	Objects []string // all other keys, and those of points that no recovery can use
	Bytes   int64
	// LockedSince is the time of the oldest point that remains only because it is locked, with all later ones. It is zero
	// where none is.
	LockedSince time.Time
}

// PlanPrune finds the objects that no recovery to a moment from since on needs, and
// that are older than that and than Grace. Times of objects are the store's, so it returns objectstore.ErrClock where the clocks
// differ by more than MaxSkew. What a recovery that is under way brings back is needed. What the newest epoch has stored after
// the newest file that it refers to is spared, whatever its time.
//
// A point whose lock has not ended remains, and with it everything that recoveries from its moment on need: ExtendLocks
// locks points for longer than a retention.
func (r *Repository) PlanPrune(ctx context.Context, now, since time.Time) (*PrunePlan, error) {
	if err := r.checkClock(ctx); err != nil {
		return nil, err
	}
	plan, err := r.planPrune(ctx, now, since)
	if err != nil {
		return nil, err
	}
	locked, err := r.oldestLocked(ctx, plan.Points)
	if err != nil || locked.IsZero() {
		return plan, err
	}
	if plan, err = r.planPrune(ctx, now, locked); err != nil {
		return nil, err
	}
	plan.LockedSince = locked
	return plan, nil
}

// checkClock compares the clocks of the store and of this machine.
func (r *Repository) checkClock(ctx context.Context) error {
	ahead, err := r.store.ClockSkew(ctx)
	if err != nil {
		return fmt.Errorf("compare the clocks: %w", err)
	}
	if ahead.Abs() <= MaxSkew {
		return nil
	}
	differs := fmt.Sprintf("the store's is %s ahead", ahead)
	if ahead < 0 {
		differs = fmt.Sprintf("the store's is %s behind", -ahead)
	}
	return &objectstore.Error{
		Act: "prune", Store: r.store.String(), Kind: objectstore.ErrClock, Detail: differs,
		Remedy: "nothing is removed: set both clocks, and let NTP keep them",
	}
}

// oldestLocked returns the time of the oldest of some points that is locked, zero for none.
func (r *Repository) oldestLocked(ctx context.Context, points []string) (oldest time.Time, err error) {
	for _, key := range points {
		info, err := r.store.Stat(ctx, key)
		if errors.Is(err, objectstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return oldest, fmt.Errorf("find what is locked: %w", err)
		}
		if info.RetainUntil.After(time.Now()) { // whatever the moment of the plan
			p, _ := pointOf(key)
			return p.Time, nil
		}
	}
	return oldest, nil
}

// planPrune is PlanPrune without regard to locks.
func (r *Repository) planPrune(ctx context.Context, now, since time.Time) (*PrunePlan, error) {
	l, err := r.findLive(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("find what is needed: %w", err)
	}
	before := earlier(l.since, now.Add(-Grace))
	plan := &PrunePlan{}
	var parts unneeded
	for info, err := range r.objects(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list the objects: %w", err)
		}
		if l.needs(info.Key) {
			continue
		}
		if id, isPart := fileOf(info.Key); isPart {
			parts.add(plan, l, before, id, info)
		} else if info.Modified.Before(before) {
			plan.add(info, l)
		}
	}
	parts.end(plan, l, before)
	return plan, nil
}

// unneeded is the parts of a file that nothing refers to. All are as old as the newest one: the file may be one that is being
// stored for longer than the retention.
type unneeded struct {
	id     fileID
	newest time.Time
	parts  []objectstore.Info
}

// add adds a part. Those of a file follow each other in a list.
func (u *unneeded) add(plan *PrunePlan, l *live, before time.Time, id fileID, info objectstore.Info) {
	if id != u.id {
		u.end(plan, l, before)
		*u = unneeded{id: id}
	}
	if u.parts = append(u.parts, info); info.Modified.After(u.newest) {
		u.newest = info.Modified
	}
}

// end adds the file to the plan, if it is old.
func (u *unneeded) end(plan *PrunePlan, l *live, before time.Time) {
	if !u.newest.Before(before) || l.mayBeNew(u.id) {
		return
	}
	for _, info := range u.parts {
		plan.add(info, l)
	}
}

func (p *PrunePlan) add(info objectstore.Info, l *live) {
	p.Bytes += info.Size
	if point, ok := pointOf(info.Key); ok && l.counts(point) {
		p.Points = append(p.Points, info.Key)
		return
	}
	p.Objects = append(p.Objects, info.Key)
}

// Prune deletes what a plan names: points first, so that none is left whose files are
// gone. It needs credentials that may delete. Locked objects remain; the
// number of them is returned. After an error, which is also the answer to a point that was locked after the plan was made, plan again.
func (r *Repository) Prune(ctx context.Context, p *PrunePlan) (locked int, err error) {
	for _, key := range p.Points {
		if err := r.store.Delete(ctx, key); err != nil {
			return 0, fmt.Errorf("prune: %w", err)
		}
	}
	for _, key := range p.Objects {
		err := r.store.Delete(ctx, key)
		if errors.Is(err, objectstore.ErrLocked) {
			locked++
		} else if err != nil {
			return locked, fmt.Errorf("prune: %w", err)
		}
	}
	return locked, nil
}

// ExtendLocks makes the locks of all that a recovery to a moment from since on needs
// last for a retention from now, where less than half of it is left. It returns how
// many it extended. The machine may do that itself: locks are never shortened. The marker and the master keys come first, and
// also where there is no point yet.
func (r *Repository) ExtendLocks(ctx context.Context, now, since time.Time, mode objectstore.Mode, retention time.Duration) (extended int, err error) {
	extend := func(prefix string, isDue func(objectstore.Info) bool) error {
		for info, err := range r.store.List(ctx, prefix, "") {
			if err != nil {
				return fmt.Errorf("list the objects: %w", err)
			}
			if !isDue(info) {
				continue
			}
			done, err := r.extendLock(ctx, info.Key, now, mode, retention)
			if err != nil {
				return err
			}
			if done {
				extended++
			}
		}
		return nil
	}
	// These were created before anybody knew the retention.
	for _, prefix := range []string{markerKey, keysPrefix} {
		if err := extend(prefix, func(objectstore.Info) bool { return true }); err != nil {
			return extended, err
		}
	}
	l, err := r.findLive(ctx, since)
	if err != nil {
		return extended, fmt.Errorf("find what is needed: %w", err)
	}
	// All others were locked for the retention when they were created.
	return extended, extend("", func(info objectstore.Info) bool {
		return !info.Modified.After(now.Add(-retention/2)) && l.needs(info.Key)
	})
}

func (r *Repository) extendLock(ctx context.Context, key string, now time.Time, mode objectstore.Mode, retention time.Duration) (bool, error) {
	info, err := r.store.Stat(ctx, key)
	if err != nil {
		return false, fmt.Errorf("extend the lock: %w", err)
	}
	if info.RetainUntil.After(now.Add(retention / 2)) {
		return false, nil
	}
	err = r.store.Retain(ctx, key, objectstore.Retention{Mode: mode, Until: now.Add(retention)})
	if err != nil {
		return false, fmt.Errorf("extend the lock: %w", err)
	}
	return true, nil
}
