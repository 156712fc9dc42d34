package offsite

import (
	"time"

	"holdfast/backup/wal"
)

// archives returns the archives that receive WAL, by database. It is called before the writer's status is read: what comes to
// an archive in between then waits in the writer, or is stored. s.mu is held.
func (s *Service) archives() map[string]wal.Status {
	all := map[string]wal.Status{}
	for name := range s.writer.Status().Streams {
		archive, receives := s.backups.WALStatus(name.Owner)
		if name.Owner != "" && receives && !s.databases.Rests(name.Owner) {
			all[name.Owner] = archive
		}
	}
	return all
}

// setRecoveryPoints sets the recovery points of the whole and of the streams of WAL: nothing is missing in the copy that was
// acknowledged before. since is a time before which nothing was acknowledged that waits in the writer. The log copies archives,
// so what a server has committed and its archive does not have yet waits in no stream: a point is not after the time up to which
// the archive is known to have every commit. While that is not known, as just after a server's start, a point
// stays where it was. Nor is it after the time from which on everything of a database is missing, because no backup that
// leads to its data is in the copy yet. s.mu is held.
func (s *Service) setRecoveryPoints(st *Status, archives map[string]wal.Status, since, now time.Time) {
	point, before := pointOf(since, now), s.reachedBefore(now)
	unrecoverable, err := s.backups.Unrecoverable(s.known.hasBackup)
	if err != nil {
		s.core.Log.Error("look for backups that are not copied", "error", err)
		point = before
	}
	for _, since := range unrecoverable {
		st.Lag, point = max(st.Lag, now.Sub(since)), earlier(point, since)
	}
	for i := range st.Streams {
		stream := &st.Streams[i]
		stream.Point = later(stream.Point, before)
		if since, lacks := unrecoverable[stream.Database]; lacks {
			stream.Lag, stream.Point = max(stream.Lag, now.Sub(since)), earlier(stream.Point, since)
		}
		archive, receives := archives[stream.Database]
		if !receives {
			continue
		}
		if !archive.Healthy() || archive.Backlog > 0 {
			stream.Lag = max(stream.Lag, archive.RPO(now))
			st.Lag = max(st.Lag, stream.Lag)
		}
		known := archive.RestorableTo
		if known.IsZero() {
			known = before
		}
		stream.Point = earlier(stream.Point, known)
		point = earlier(point, known)
	}
	s.reached = later(point, before) // which stays true
	st.Point = new(s.reached)
}

// pointOf returns the moment up to which everything is stored, if nothing was acknowledged before since that is not, zero for
// nothing at all.
func pointOf(since, now time.Time) time.Time {
	if since.IsZero() {
		return now
	}
	return now.Add(-max(0, time.Since(since)))
}

// reachedBefore returns the newest point that the status has named. One in the future was named by a clock that has been
// set back since: then it is the time at which the service began. s.mu is held.
func (s *Service) reachedBefore(now time.Time) time.Time {
	before := s.reached
	if before.IsZero() {
		before = s.state.Covered
	}
	if before.After(now) {
		return now.Add(-time.Since(s.made))
	}
	return before
}

// earlier returns the earlier of two times. A zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
