package offsite

import (
	"time"
)

// setRecoveryPoints sets the recovery points of the whole and of the streams of WAL. The log copies archives, so what a server
// has committed and its archive does not have yet waits in no stream: a point is not after the time up to which
// the archive is known to have every commit. While that is not known, as just after a server's start, a point
// stays where it was. Nor is it after the time from which on everything of a database is missing, because no backup that
// leads to its data is in the copy yet. s.mu is held.
func (s *Service) setRecoveryPoints(st *Status, now time.Time) {
	point, before := now.Add(-st.Lag), s.reachedBefore(now)
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
		archive, receives := s.backups.WALStatus(stream.Database)
		if since, lacks := unrecoverable[stream.Database]; lacks {
			stream.Lag, stream.Point = max(stream.Lag, now.Sub(since)), earlier(stream.Point, since)
		}
		if stream.Database == "" || !receives || s.databases.Rests(stream.Database) {
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
	if point.Before(before) {
		point = before // which stays true
	}
	s.reached = point
	st.Point = &point
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
