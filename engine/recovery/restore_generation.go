package recovery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// firstGeneration is the generation of a new database.
const firstGeneration = 1

// pointPlanner plans restores of a database to points in its history.
type pointPlanner struct {
	s       *Service
	db      model.Database
	archive *wal.Archive
	backups []model.Backup // in the order in which they are tried
	safe    time.Time      // the last moment of the present generation that is known to be safe
	written xlog.LSN       // how far the present server has written, 0 if that is not known
}

// newPointPlanner returns a planner with the restorable backups of a database, newest first.
func (s *Service) newPointPlanner(ctx context.Context, db model.Database, backups []model.Backup) (*pointPlanner, error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return nil, err
	}
	safe, err := s.restorableTo(ctx, db, backups)
	if err != nil {
		return nil, err
	}
	// Backups whose verification has failed are a last resort.
	slices.SortStableFunc(backups, func(a, b model.Backup) int { return cmp.Compare(verificationRank(a), verificationRank(b)) })
	noteSetBack(&db, s.core.Clock())
	return &pointPlanner{s: s, db: db, archive: archive, backups: backups, safe: safe}, nil
}

// plan plans a restore to a point. The error is [backup.ErrAfterTarget] if no backup from before the point is left.
func (p *pointPlanner) plan(ctx context.Context, at RestorePoint) (RestorePlan, error) {
	if at.LSN == "" {
		return p.planTime(ctx, at.Time)
	}
	lsn, err := at.position()
	if err != nil {
		return RestorePlan{}, err
	}
	return p.planLSN(ctx, lsn)
}

// planLSN plans a restore to an LSN. The generations run over the same LSNs: one that the present server has written is of the
// present data, even if the archive lacks it, unless it is from before their backups. The last generation that has it counts otherwise.
func (p *pointPlanner) planLSN(ctx context.Context, lsn xlog.LSN) (RestorePlan, error) {
	reason := backup.ErrAfterTarget
	for _, generation := range generationsOf(p.db) {
		plan, err := p.planIn(ctx, wal.Target{Generation: generation, LSN: lsn})
		if err == nil {
			return plan, nil
		}
		if errors.Is(err, backup.ErrAfterTarget) {
			continue
		}
		if generation == p.db.Generation && p.written >= lsn {
			return RestorePlan{}, explainUnarchived(err, lsn)
		}
		if generation == p.db.Generation && p.written == 0 {
			return RestorePlan{}, err
		}
		reason = err
	}
	return RestorePlan{}, reason
}

// explainUnarchived gives the remedy if the archive ends before an LSN that the present server has written.
func explainUnarchived(err error, lsn xlog.LSN) error {
	past, ok := errors.AsType[*wal.OutsideError](err)
	if !ok {
		return err
	}
	return model.Errorf(model.CodeConflict, "the WAL of the present data is archived up to %v, and not up to %v yet: try again when it is, or choose a moment", past.LatestLSN, lsn)
}

// planTime plans a restore to a time. By the clocks of the switches, one generation served then. If the clock was set back
// after a switch, later generations may have seen that time too; of those that did, the one counts that was last known to
// serve before that time, by a commit or by a sweep.
func (p *pointPlanner) planTime(ctx context.Context, at time.Time) (RestorePlan, error) {
	generations := generationsAt(p.db, at)
	best, err := p.planIn(ctx, wal.Target{Generation: generations[0], Time: at})
	if err != nil {
		return best, err
	}
	last := laterOf(best.At, p.seen(generations[0], at))
	for _, generation := range generations[1:] {
		plan, err := p.planIn(ctx, wal.Target{Generation: generation, Time: at})
		if err != nil {
			continue // it has nothing of then
		}
		served := p.seen(generation, at)
		if plan.Target.Generation == generation { // otherwise the commit is from before the switch
			served = laterOf(served, plan.At)
		}
		if served.After(last) {
			best, last = plan, served
		}
	}
	return best, nil
}

// planIn plans a restore to a target in a generation, from the newest backup that leads there.
func (p *pointPlanner) planIn(ctx context.Context, target wal.Target) (RestorePlan, error) {
	target.Idle = p.s.idleUntil(p.db, target.Generation, p.safe)
	reason := backup.ErrAfterTarget
	for _, b := range p.backups {
		if !leadsTo(p.archive, b, target.Generation) {
			continue
		}
		plan, err := planFrom(ctx, p.archive, b, target)
		if err == nil {
			return plan, nil
		}
		if !errors.Is(err, backup.ErrAfterTarget) {
			reason = err
		}
	}
	return RestorePlan{}, reason
}

// seen returns when a sweep saw, after the clock had been set back, that a generation served: zero if that was not before at.
func (p *pointPlanner) seen(generation int, at time.Time) (seen time.Time) {
	for _, it := range p.db.Served {
		if it.Generation == generation && !it.Seen.After(at) {
			seen = laterOf(seen, it.Seen)
		}
	}
	return seen
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// generationsOf returns the generations of a database that serve and have served, the present one first and then the last ones.
func generationsOf(db model.Database) []int {
	generations := []int{db.Generation}
	add := func(generation int) {
		if !slices.Contains(generations, generation) {
			generations = append(generations, generation)
		}
	}
	for _, it := range slices.Backward(db.Served) {
		add(it.Generation)
	}
	add(firstGeneration) // it served before the first switch
	return generations
}

// generationsAt returns the generation that served at a time by the clocks of the switches, and then those that later
// switches led to.
func generationsAt(db model.Database, at time.Time) []int {
	generations := []int{firstGeneration}
	for _, it := range db.Served {
		if !it.Since.After(at) {
			generations = []int{it.Generation}
		} else if !slices.Contains(generations, it.Generation) {
			generations = append(generations, it.Generation)
		}
	}
	return generations
}

// idleUntil returns the time up to which the archive is known to have all commits of a generation: safe for the current
// one, now for one that was shut down cleanly and replaced, else the zero time.
func (s *Service) idleUntil(db model.Database, generation int, safe time.Time) time.Time {
	if generation == db.Generation && s.databases.Rests(db.ID) {
		return s.core.Clock()
	}
	if generation == db.Generation {
		return safe
	}
	last := firstGeneration
	for _, it := range db.Served {
		if last == generation && it.Undrained {
			return time.Time{}
		}
		last = it.Generation
	}
	return s.core.Clock()
}

// sweepInterval is about how often NoteSetBack is called.
const sweepInterval = time.Minute

// NoteSetBack records that the clock was set back to before the last switch of a database, so that times from then on
// refer to the data that serve now.
func (s *Service) NoteSetBack(db model.Database) error {
	if !noteSetBack(&db, s.core.Clock()) {
		return nil
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(db.ID, func(d *model.Database) { noteSetBack(d, s.core.Clock()) })
	})
}

// noteSetBack sets when the present generation was first seen to serve after the clock was set back, and reports whether
// that is new. It was set back since the last sweep.
func noteSetBack(db *model.Database, now time.Time) bool {
	if len(db.Served) == 0 {
		return false
	}
	last := db.Served[len(db.Served)-1]
	if !last.Since.After(now) || !last.Seen.IsZero() && !last.Seen.After(now) {
		return false
	}
	db.Served = slices.Clone(db.Served)
	db.Served[len(db.Served)-1].Seen = now.Add(-sweepInterval)
	return true
}
