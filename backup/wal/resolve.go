package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/backup/wal/xlog"
)

// Target is a point to restore to: everything committed before it is restored, and nothing after it. A transaction that is
// prepared, or rolled back when it was, counts as a commit, here and in what the archive says of commits: a restore brings
// back exactly the prepared transactions of its target.
type Target struct {
	// Generation and Timeline identify the history to search, which includes all parents. Timeline 0 = the
	// generation's latest.
	Generation int
	Timeline   uint32
	// Since is the start of the search: the start of the backup to restore.
	Since xlog.LSN

	// Exactly one is set: a time by the server's clock, or the end of the wanted WAL as returned by
	// pg_current_wal_lsn.
	Time time.Time
	LSN  xlog.LSN

	// Idle is the time up to which the archive has every commit, although the last one may be much older:
	// Status.RestorableTo.
	Idle time.Time
}

// Resolution is the WAL position of a target.
type Resolution struct {
	Last   Point     // the last record to replay
	Commit time.Time // timestamp of the latest restored commit; as a target it resolves to the same record

	// Limit is the last record that can be replayed without another commit: the record before the next commit.
	Limit Point
}

// Point is a record after which replay can stop.
type Point struct {
	Generation int
	Timeline   uint32   // for recovery_target_timeline
	Start      xlog.LSN // for recovery_target_lsn, inclusive
	End        xlog.LSN // pg_last_wal_replay_lsn() after its replay
}

// Reach returns the last record to replay for a backup that is consistent at stop: the last wanted commit if it
// comes after stop, otherwise a record before the next commit. It returns an error if the backup is younger than the
// target.
func (r Resolution) Reach(stop xlog.LSN) (Point, error) {
	switch {
	case r.Last.End >= stop:
		return r.Last, nil
	case r.Limit.End >= stop:
		return r.Limit, nil
	}
	return Point{}, fmt.Errorf("the target is before the end of the backup at %v", stop)
}

// OutsideError means that the target is after the end of the archive.
type OutsideError struct {
	Latest    time.Time // latest restorable time
	LatestLSN xlog.LSN
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("the target is after the latest that can be restored, %s (%v)", e.Latest.Format(time.RFC3339Nano), e.LatestLSN)
}

// clockSlack distinguishes two reasons for a commit with an earlier timestamp than a preceding one in the WAL.
// Concurrent transactions take their timestamps before their WAL positions, so they can be out of order, by much
// less than a minute. A larger difference means that the clock was set back.
const clockSlack = time.Minute

// Resolve finds the last record to replay for a target. For a time, this is the last commit before the first commit
// with a later timestamp. A commit takes its WAL position before it returns, so this includes every transaction
// whose commit returned before that time, and none with a later timestamp. If the clock was set back by more than a
// minute, the times occur twice; the later pass counts, so that no commit that may be wanted is missing.
func (a *Archive) Resolve(ctx context.Context, t Target) (Resolution, error) {
	if t.Time.IsZero() == (t.LSN == 0) {
		return Resolution{}, errors.New("a target is a time or an LSN")
	}
	spans, err := a.spans(t.Generation, t.Timeline)
	if err != nil {
		return Resolution{}, err
	}
	s := &search{target: t, archive: a, ctx: ctx, spans: spans, size: segmentSizeOf(spans)}
	if s.size == 0 {
		return Resolution{}, fmt.Errorf("%w: generation %d has received nothing", ErrGap, t.Generation)
	}
	if t.LSN != 0 {
		return s.byLSN()
	}
	return s.byTime()
}
