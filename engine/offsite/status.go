package offsite

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
)

// Status describes the copy at a moment.
type Status struct {
	State model.OffsiteState
	// Point is the moment to which a recovery would bring the appliance, nil if there
	// is nothing to recover from. Lag is its age, 0 if nothing has changed since.
	Point *time.Time
	Lag   time.Duration
	// Backlog is the bytes that wait, about.
	Backlog int64
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
	Since   time.Time // of the problem
	// Fenced says which machine has taken over, nil for none.
	Fenced *Fenced
	// Recovery is what is brought back, nil unless the appliance is being recovered.
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

// Status returns the status of the copy.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{State: model.OffsiteOff, Fenced: s.state.Fenced, Verified: s.state.Verified, Restored: s.state.Restored}
	if covered := s.state.Covered; !covered.IsZero() {
		st.Point, st.Checkpoint = &covered, &covered
	}
	switch {
	case st.Fenced != nil:
		st.State = model.OffsiteFenced
		s.describeObjects(&st)
		return st
	case !s.Enabled():
		st = Status{State: model.OffsiteOff}
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

// describe adds what the writer says.
func (s *Service) describe(st *Status) {
	now := s.core.Clock()
	st.Unreadable, st.Foreign = s.unreadable.all(), s.foreign
	st.State, st.Cause, st.Since = model.OffsiteStarting, s.failure.err, s.failure.since
	if s.writer != nil {
		w := s.writer.Status()
		st.Backlog, st.Counts, st.Foreign = w.Backlog, w.Counts, slices.Concat(s.foreign, w.Foreign)
		if w.Problem.Err != nil {
			st.Cause, st.Since = w.Problem.Err, w.Problem.Since
		}
		if s.whole == s.gaps.Load() {
			reached := now.Add(-w.Lag)
			st.State, st.Point, st.Lag = model.OffsiteCopying, &reached, w.Lag
		}
	}
	if st.Point != nil && st.State != model.OffsiteCopying {
		st.Lag = max(0, now.Sub(*st.Point))
	}
	if s.recovery != nil && s.recovery.isPending() {
		report := s.recovery.store.get().Report
		st.Recovery = &report
		if s.writer == nil {
			st.State = model.OffsiteRecovering
		}
	}
	if st.Cause != nil {
		st.State, st.Problem = model.OffsiteFailing, explain(st.Cause)
	}
}

// explain says in plain words why copying fails. The error itself may name the store.
func explain(err error) string {
	if _, other := errors.AsType[*otherCopyError](err); other {
		return err.Error() + "; start with the store of that copy and without --objects-local-size, which brings them back, and name another one then"
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
	return "copying fails; the appliance's log says why"
}

// began makes a writer the one that the status describes.
func (s *Service) began(w *stream.Writer) {
	s.gaps.Add(1) // the log lacks what happened since the last run
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writer, s.failure = w, failure{}
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
		s.state.Covered = s.core.Clock().Add(-w.Status().Lag)
	}
	s.writer = nil
}

// closing returns the context of Close, nil before it.
func (s *Service) closing() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}
