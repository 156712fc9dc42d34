package backup

import (
	"context"
	"errors"
	"time"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
)

// Plan describes how far a backup is rolled forward.
type Plan struct {
	Start, Stop xlog.LSN // of the backup
	// Target is the last WAL record to replay, and At the time of the last commit up to it, or zero if unknown.
	Target wal.Point
	At     time.Time
}

// ErrAfterTarget means that the backup was made after the requested target.
var ErrAfterTarget = errors.New("the backup ends after the target")

// NewPlan plans to roll a backup forward to a target. It uses the start, the stop and the completion time of b. The
// error wraps [ErrAfterTarget], or [wal.ErrGap] if the WAL in between is not complete, or is a [*wal.OutsideError].
func NewPlan(ctx context.Context, archive *wal.Archive, b repository.Backup, target wal.Target) (p Plan, err error) {
	if p.Start, err = xlog.ParseLSN(b.StartLSN); err != nil {
		return p, err
	}
	if p.Stop, err = xlog.ParseLSN(b.StopLSN); err != nil {
		return p, err
	}
	if target.LSN != 0 && target.LSN < p.Stop {
		return p, ErrAfterTarget
	}
	target.Since = p.Start
	found, err := archive.Resolve(ctx, target)
	if err != nil {
		return p, err
	}
	// Without a commit between the backup and the target, WAL does not show whether the commits in the backup
	// precede the target; only the clock does.
	if target.LSN == 0 && found.Last.Start == 0 && target.Time.Before(b.CompletedAt) {
		return p, ErrAfterTarget
	}
	p.At = found.Commit
	if p.Target, err = found.Reach(p.Stop); err != nil {
		return p, ErrAfterTarget
	}
	return p, archive.Covers(p.Target.Generation, p.Target.Timeline, p.Start, p.Target.End)
}

// Check reads all WAL that the plan needs; NewPlan only checks that it exists.
// The error wraps [wal.ErrGap] and names the segment that is missing or
// damaged. progress, if not nil, is called with the bytes read.
func (p Plan) Check(ctx context.Context, archive *wal.Archive, progress func(done, total int64)) error {
	return archive.Check(ctx, p.Target.Generation, p.Target.Timeline, p.Start, p.Target.End, func(at xlog.LSN) {
		if progress != nil {
			progress(max(0, int64(at)-int64(p.Start)), p.WALBytes())
		}
	})
}

// WALBytes returns the number of bytes of WAL to replay over the backup.
func (p Plan) WALBytes() int64 { return int64(p.Target.End - p.Start) }

// Recovery returns the recovery of the data directory dir according to the
// plan.
func (p Plan) Recovery(archive *wal.Archive, dir string) wal.Recovery {
	return wal.Recovery{Archive: archive, Start: p.Start, Consistent: p.Stop, Target: p.Target, Dir: dir}
}
