package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/backup/wal/xlog"
)

// Target is a moment to go back to: everything committed before it is to be
// there, nothing after it.
type Target struct {
	// Incarnation and Timeline say on which history it is looked for: the one
	// that leads there, through all parents. Timeline 0 = the incarnation's
	// latest.
	Incarnation int
	Timeline    uint32
	// Since is where to begin to look: the start of the backup to restore.
	Since xlog.LSN

	// Exactly one: a time by the server's clock, or the end of what is wanted,
	// as pg_current_wal_lsn says it.
	Time time.Time
	LSN  xlog.LSN

	// Idle is a time up to which nothing more was committed than the archive
	// has, though its last commit may be long ago: Status.RestorableTo.
	Idle time.Time
}

// Resolution is what a target means in the WAL.
type Resolution struct {
	Last   Point     // the last record to replay
	Commit time.Time // the latest stamp of a commit there: a target at it means the same

	// Limit is the last record that can be replayed with the same commits
	// being there: the one before the next commit.
	Limit Point
}

// Point is a record that replay can stop after.
type Point struct {
	Incarnation int
	Timeline    uint32   // for recovery_target_timeline
	Start       xlog.LSN // for recovery_target_lsn, inclusive
	End         xlog.LSN // what the server says it has replayed then
}

// Reach is the last record to replay for a backup that is consistent at stop:
// the last commit wanted if it comes after that, else what follows up to the
// next commit. An error says that this backup is too young for the target.
func (r Resolution) Reach(stop xlog.LSN) (Point, error) {
	switch {
	case r.Last.End >= stop:
		return r.Last, nil
	case r.Limit.End >= stop:
		return r.Limit, nil
	}
	return Point{}, fmt.Errorf("the target lies before the end of the backup at %v", stop)
}

// OutsideError is a target that the archive does not reach.
type OutsideError struct {
	Latest    time.Time // the last time that can be restored
	LatestLSN xlog.LSN
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("the target lies after the latest that can be restored, %s (%v)", e.Latest.Format(time.RFC3339Nano), e.LatestLSN)
}

// clockSlack tells two reasons apart for which a commit can be stamped earlier
// than one before it in the WAL. Transactions that commit at once take their
// times before their places, and overtake each other; that is over in much less
// than a minute. Else the clock has been set back.
const clockSlack = time.Minute

// Resolve finds the last record to replay for a target. A time means: the last
// commit before the first one stamped later. Because a commit is answered after
// it has its place in the WAL, that is every transaction whose commit was
// answered before that time, and none stamped after it. Where the clock was set
// back by more than a minute the times come twice; the later pass is meant then,
// so that nothing that can be meant is missing.
func (a *Archive) Resolve(ctx context.Context, t Target) (Resolution, error) {
	spans, err := a.targetSpans(&t)
	if err != nil {
		return Resolution{}, err
	}
	s := &search{target: t, archive: a, ctx: ctx, spans: spans, size: segmentSizeOf(spans)}
	if s.size == 0 {
		return Resolution{}, fmt.Errorf("%w: incarnation %d has received nothing", ErrGap, t.Incarnation)
	}
	if t.LSN != 0 {
		return s.byLSN()
	}
	return s.byTime()
}

func (a *Archive) targetSpans(t *Target) ([]span, error) {
	if t.Time.IsZero() == (t.LSN == 0) {
		return nil, errors.New("a target is a time or an LSN")
	}
	if t.Timeline == 0 {
		a.mu.Lock()
		if b := a.branches[t.Incarnation]; b != nil {
			if all := b.timelines(); len(all) > 0 {
				t.Timeline = all[len(all)-1]
			} else if b.info().Parent != nil {
				t.Timeline = b.info().Parent.Timeline + 1
			}
		}
		a.mu.Unlock()
	}
	return a.spans(t.Incarnation, t.Timeline)
}
