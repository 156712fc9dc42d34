package offsite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Status describes the copy at a moment.
type Status struct {
	State model.OffsiteState
	// Point is the moment to which a recovery would bring the appliance with everything that was acknowledged before, nil if
	// there is nothing to recover from. Lag is the age of the oldest change that is known to be missing, 0 for none.
	Point *time.Time
	Lag   time.Duration
	// Backlog is the bytes that wait, about.
	Backlog int64
	// Streams are the recovery points of each kind of data, and of each database's WAL. They are empty while there is no
	// connection to the store.
	Streams []StreamStatus
	// Checkpoint is the time of the newest checkpoint, nil before the first.
	Checkpoint *time.Time
	// Verified is the newest verification, nil before the first.
	Verified *Verified
	// Restored is the newest trial restore of a database, nil before the first.
	Restored *Restored
	// Problem says why copying makes no progress, in words for everybody; Cause is the error for the
	// operator, nil if there is none.
	Problem string
	Cause   error
	// Readable means that the problem is not about reading: what is only in the copy can be fetched.
	Readable bool
	Since    time.Time // of the problem
	// Fenced says which machine has taken over, nil for none.
	Fenced *Fenced
	// Recovery is what is brought back or was, nil unless the appliance came from a copy.
	Recovery *RecoveryReport
	// Unreadable is what cannot be read here, so that the copy keeps what it has of it: ids of databases, and "" for objects.
	Unreadable []string
	// Foreign are objects in the place of claims that are none: somebody else can write to the store.
	Foreign []string
	// Counts are what was stored since the start.
	Counts stream.Counts
	// AwayObjects is how many large objects are in the copy only, of AwayBytes.
	AwayObjects, AwayBytes int64
	// LocalBytes is what the files of large objects take here, and LocalLimit what they may; 0 is no bound.
	LocalBytes, LocalLimit int64
}

// StreamStatus is the recovery point of a stream.
type StreamStatus struct {
	Stream   string // one of the constants
	Database string // whose WAL it is, "" for other streams
	Name     string // of the database
	Point    time.Time
	Lag      time.Duration
	Backlog  int64 // bytes, about
}

// Of returns the recovery point of a database's WAL, false if it is unknown.
func (s Status) Of(database string) (StreamStatus, bool) {
	i := slices.IndexFunc(s.Streams, func(st StreamStatus) bool { return st.Database == database })
	if database == "" || i < 0 {
		return StreamStatus{}, false
	}
	return s.Streams[i], true
}

// streamsOf returns the recovery points of a writer's streams.
func streamsOf(all map[stream.Stream]stream.StreamStatus, now time.Time) (streams []StreamStatus) {
	for name, st := range all {
		streams = append(streams, StreamStatus{Stream: name.Kind, Database: name.Owner, Point: pointOf(st.Since, now), Lag: st.Lag, Backlog: st.Backlog})
	}
	slices.SortFunc(streams, func(a, b StreamStatus) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Database, b.Database))
	})
	return streams
}

// StatusFor returns the status as members of an organization may see it: without the databases of others.
func (s *Service) StatusFor(organization string) (Status, error) {
	st, names := s.Status(), map[string]string{}
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		own, err := core.AllBy(tx.Databases(), meta.ByOrganization, meta.Key(organization))
		for _, db := range own {
			names[db.ID] = db.Name
		}
		return err
	})
	st.Streams = slices.DeleteFunc(st.Streams, func(stream StreamStatus) bool { return stream.Database != "" && names[stream.Database] == "" })
	for i, stream := range st.Streams {
		st.Streams[i].Name = names[stream.Database]
	}
	if st.Restored != nil && names[st.Restored.Database] == "" {
		st.Restored = &Restored{At: st.Restored.At, Error: st.Restored.Error}
	}
	if st.Recovery != nil {
		own := st.Recovery.of(organization)
		st.Recovery = &own
	}
	return st, err
}

// Status returns the status of the copy.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{State: model.OffsiteOff, Fenced: s.state.Fenced, Verified: s.state.Verified, Restored: s.state.Restored, Recovery: s.report()}
	if covered := s.state.Covered; !covered.IsZero() && !covered.After(s.core.Clock()) {
		st.Point, st.Checkpoint = &covered, &covered
	}
	switch {
	case st.Fenced != nil:
		st.State = model.OffsiteFenced
		s.describeObjects(&st)
		return st
	case !s.Enabled():
		st = Status{State: model.OffsiteOff, Recovery: st.Recovery}
		s.describeObjects(&st)
		return st
	}
	s.describe(&st)
	s.describeObjects(&st)
	return st
}

// describeObjects adds where large objects are.
func (s *Service) describeObjects(st *Status) {
	st.AwayObjects, st.AwayBytes = s.core.Blobs.Absent()
	st.LocalBytes = s.core.Blobs.Local()
	if s.objects.Evicts() {
		st.LocalLimit = s.objects.LocalLimit()
	}
}

// report returns the report of the recovery into this data directory, nil if there was none. What was dealt with since is no
// longer missing: a database into which another backup was restored, and one that was deleted.
func (s *Service) report() *RecoveryReport {
	if s.plan == nil {
		return nil
	}
	plan := s.plan.get()
	records, err := recordsOf(s.core, plan.Report)
	if err != nil {
		s.core.Log.Error("read the records of recovered databases", "error", err)
	}
	for i := range plan.Report.Databases {
		d := &plan.Report.Databases[i]
		if d.Error != "" && err == nil {
			d.follow(records[d.ID])
		}
		d.Left = plan.isLeft(*d)
	}
	return &plan.Report
}

// describe adds what the writer says.
func (s *Service) describe(st *Status) {
	now := s.core.Clock()
	st.Unreadable, st.Foreign = s.unreadable.all(), s.foreign
	st.State, st.Cause, st.Since = model.OffsiteStarting, s.failure.err, s.failure.since
	if s.writer != nil {
		archives := s.archives()
		w := s.writer.Status()
		st.Backlog, st.Counts, st.Foreign = w.Backlog, w.Counts, slices.Concat(s.foreign, w.Foreign)
		if at := w.Point.Time; !at.IsZero() {
			st.Checkpoint = &at
		}
		if w.Problem.Err != nil {
			st.Cause, st.Since = w.Problem.Err, w.Problem.Since
		}
		if s.whole == s.gaps.Load() {
			st.State, st.Lag, st.Streams = model.OffsiteCopying, w.Lag, streamsOf(w.Streams, now)
			s.setRecoveryPoints(st, archives, w.Since, now)
		}
	}
	if st.Point != nil && st.State != model.OffsiteCopying {
		st.Lag = max(0, now.Sub(*st.Point))
	}
	if s.recovery != nil && s.recovery.isPending() && s.writer == nil {
		st.State = model.OffsiteRecovering
	}
	if st.Cause != nil {
		st.State, st.Problem = model.OffsiteFailing, explain(st.Cause)
		other, ok := errors.AsType[*otherMachineError](st.Cause)
		st.Readable = ok && other.needs
	}
}

// explain says in plain words why copying fails. The error itself may name the store.
func explain(err error) string {
	if other, ok := errors.AsType[*objects.OtherCopyError](err); ok {
		return other.Error() + "; start with the store of that copy and without --objects-local-size, which brings them back, and name another one then"
	}
	if other, ok := errors.AsType[*otherMachineError](err); ok {
		return other.Error()
	}
	for _, known := range []struct {
		kind error
		text string
	}{
		{objectstore.ErrDenied, "the store denies access"},
		{objectstore.ErrNoStore, "the store is not there"},
		{objectstore.ErrClock, "the clocks of this machine and of the store differ"},
		{objectstore.ErrFull, "the store is full"},
		{objectstore.ErrUnavailable, "the store is not available"},
		{objectstore.ErrUnsupported, "the store cannot do what is needed"},
		{context.DeadlineExceeded, "the store is not available"},
	} {
		if errors.Is(err, known.kind) {
			return known.text
		}
	}
	switch {
	case errors.Is(err, stream.ErrNoMarker):
		return "the copy's marker, the object `holdfast`, is missing in the store"
	case isNoSpace(err), core.IsDiskFull(err):
		return "the disk of this machine has too little free space"
	case model.CodeOf(err) == model.CodeForbidden, errors.Is(err, sealed.ErrNoKey):
		return "the passphrase or the identity that was given does not open all of the copy"
	case model.CodeOf(err) == model.CodeNotFound:
		return "the store is not prepared for a copy; `holdfast offsite init` does that"
	}
	return "copying fails; the appliance's log says why"
}

// began makes the writer of a run the one that the status describes.
func (s *Service) began(r *run) {
	s.gaps.Add(1) // the log lacks what happened since the last run
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writer, s.known, s.failure = r.writer, r.known, failure{}
}

// succeed notes that a checkpoint has all that the log lacked when it began.
func (s *Service) succeed(gaps uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole, s.failure = gaps, failure{}
}

// ended notes how far the copy came with a writer.
func (s *Service) ended(w *stream.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == w && s.whole == s.gaps.Load() {
		now, archives, last := s.core.Clock(), s.archives(), w.Status()
		st := Status{Lag: last.Lag, Streams: streamsOf(last.Streams, now)}
		s.setRecoveryPoints(&st, archives, last.Since, now)
		s.state.Covered = *st.Point
	}
	s.writer, s.known = nil, nil
}

// closing returns the context of Close, nil before it.
func (s *Service) closing() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}
