package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
)

const (
	// minRetry and maxRetry are between two attempts to begin a run.
	minRetry, maxRetry = 2 * time.Second, time.Minute
	// checkpointEvery and checkpointBytes are how much time and how many bytes of changes there are between two
	// checkpoints, if anything changed. A recovery replays the changes.
	checkpointEvery = 10 * time.Minute
	checkpointBytes = 512 << 20
	// checkpointGap is the least time between two checkpoints.
	checkpointGap = 10 * time.Second
	// pollInterval is how often the service looks whether something is due.
	pollInterval = time.Second
	// endPatience bounds the last checkpoint, and endPatienceAway that of a store that
	// fails already.
	endPatience, endPatienceAway = 10 * time.Second, time.Second
	// maxBurst is how many bytes may leave at once in spite of a limit.
	maxBurst = 1 << 20
)

// run makes one run after the other until ctx ends or the machine is fenced. A run
// ends when something fails that the writer does not repeat.
//
// While an appliance is recovered, the first run waits until the files of all databases are here:
// a checkpoint without them would leave them out.
func (s *Service) run(ctx context.Context) {
	if s.recovery != nil && !s.recovery.awaitFetched(ctx) {
		return
	}
	for delay := minRetry; ; delay = min(2*delay, maxRetry) {
		began := time.Now()
		err := s.copy(ctx)
		if ctx.Err() != nil {
			return
		}
		if fenced := (*fencedError)(nil); errors.As(err, &fenced) {
			s.fence(fenced.by)
			return
		}
		s.fail(err)
		if time.Since(began) > maxRetry {
			delay = minRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// fail notes why nothing is copied, and logs the first of equal failures.
func (s *Service) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure.err == nil || s.failure.err.Error() != err.Error() {
		s.core.Log.Warn("copying off-site fails and is tried again", "store", s.config.URL, "error", err)
	}
	if s.failure.err == nil {
		s.failure.since = s.core.Clock()
	}
	s.failure.err = err
}

// copy makes one run: it claims an epoch and writes until ctx ends or something fails.
func (s *Service) copy(ctx context.Context) error {
	c, caps, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	lock := stream.Options{Retention: s.config.Retention}
	if caps.Lock && s.config.Retention > 0 {
		lock.Lock = cmp.Or(caps.DefaultMode, objectstore.Governance)
	}
	w, known, err := s.open(ctx, c, caps, lock)
	if err != nil {
		return err
	}
	return s.write(ctx, &run{connection: c, writer: w, known: known, lock: lock, readBack: !caps.Checksums})
}

// connect opens the store and finds out what it can do.
func (s *Service) connect(ctx context.Context) (*connection, objectstore.Capabilities, error) {
	o := objectstore.Options{}
	if n := s.config.Bandwidth; n > 0 {
		o.Limiter = rate.NewLimiter(rate.Limit(n), int(min(n, maxBurst)))
	}
	c, can, err := connectProbed(ctx, s.location, o)
	if err == nil && s.recovery != nil && s.recovery.isPending() {
		if err = s.recovery.store.refuseOther(c, s.location.URL); err != nil {
			err = errors.Join(err, c.close())
		}
	}
	return c, can, err
}

// open claims an epoch and opens its writer.
func (s *Service) open(ctx context.Context, c *connection, caps objectstore.Capabilities, o stream.Options) (*stream.Writer, *known, error) {
	h, err := s.claim(ctx, c, caps, o)
	if err != nil {
		return nil, nil, err
	}
	o.Previous, err = h.Find(ctx, time.Time{})
	if err != nil && !errors.Is(err, stream.ErrNoPoint) {
		return nil, nil, fmt.Errorf("find the newest checkpoint: %w", err)
	}
	s.noteIgnored(h)
	known, err := readKnown(ctx, c.repository, h, o.Previous)
	if err != nil {
		return nil, nil, fmt.Errorf("read what the store has: %w", err)
	}
	state := s.currentState()
	known.repository, known.foreign = c.marker.Repository, state.TakeOver || state.Foreign
	own, err := isOwn(ctx, h, o.Previous, state.Tokens)
	if err != nil {
		return nil, nil, fmt.Errorf("find the machine of the newest checkpoint: %w", err)
	}
	known.own = own && !known.foreign
	o.Interval, o.Log, o.IsPlausible = s.config.Interval, s.core.Log, s.core.IsPlausible
	w, err := stream.NewWriter(ctx, h, o)
	if err != nil {
		return nil, nil, fmt.Errorf("begin to write: %w", err)
	}
	covered := h.Tip().Cut.Last
	return w, known, s.setState(func(state *State) {
		*state = state.enter(c.marker.Repository)
		state.TakeOver, state.Foreign = false, known.foreign
		if covered.After(state.Covered) {
			state.Covered = covered
		}
	})
}

// isOwn reports whether a checkpoint, nil for none, was made after a claim with one of some tokens.
func isOwn(ctx context.Context, h *stream.History, c *stream.Checkpoint, tokens []string) (bool, error) {
	if c == nil {
		return false, nil
	}
	for claim, err := range h.Claims(ctx) {
		if err != nil {
			return false, err
		}
		if claim.Epoch == c.Epoch {
			return slices.Contains(tokens, claim.Token), nil
		}
	}
	return false, nil
}

// noteIgnored tells the operator what the run has passed over.
func (s *Service) noteIgnored(h *stream.History) {
	var foreign []string
	for _, p := range h.Ignored {
		s.core.Log.Warn("an object of the off-site copy is damaged or not of it, and is passed over", "object", p.Key, "error", p.Err)
		if p.IsClaim() {
			foreign = append(foreign, p.Key)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign = foreign
}

// claim claims the next epoch. The token is on disk before the claim is in the store.
func (s *Service) claim(ctx context.Context, c *connection, caps objectstore.Capabilities, o stream.Options) (*stream.History, error) {
	if err := s.setState(func(state *State) { *state = state.withToken() }); err != nil {
		return nil, err
	}
	now, state := s.core.Clock(), s.currentState()
	claim := stream.ClaimOptions{Machine: machineName(), Token: state.token(), Known: state.Tokens, TakeOver: state.TakeOver}
	if !caps.Conditional {
		claim.Nonce = newNonce()
	}
	if o.Lock != "" {
		claim.Retention = objectstore.Retention{Mode: o.Lock, Until: now.Add(o.Retention)}
	}
	h, err := c.repository.Claim(ctx, now, claim)
	if errors.Is(err, stream.ErrTaken) {
		return nil, s.taken(ctx, c, err)
	}
	if err != nil {
		return nil, fmt.Errorf("claim the copy for this machine: %w", err)
	}
	return h, s.setState(func(state *State) { state.Claimed = claim.Token })
}

// machineName is what people call this machine.
func machineName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unnamed"
	}
	return name
}

// run is the work with one writer.
type run struct {
	connection *connection
	writer     *stream.Writer
	known      *known
	lock       stream.Options
	// readBack means that the store did not confirm checksums, so that bodies are read back before they leave this machine.
	readBack bool
	// checkpointed is when the newest checkpoint of the run began, as Unix time in nanoseconds; 0 before the first.
	checkpointed atomic.Int64
}

// write copies with a writer until ctx ends, the writer is fenced or something fails.
func (s *Service) write(ctx context.Context, r *run) error {
	w := r.writer
	err := s.startParts(w, r.known)
	started := err == nil
	if started {
		s.began(r)
		err = s.attend(ctx, r)
	}
	if end := s.endWriter(ctx, w); errors.Is(w.Err(), stream.ErrFenced) || errors.Is(err, stream.ErrFenced) {
		err = s.taken(context.WithoutCancel(ctx), r.connection, stream.ErrFenced)
	} else {
		err = errors.Join(err, end)
	}
	if started {
		for _, p := range s.parts {
			p.stop()
		}
	}
	return err
}

// startParts starts all parts, or none if one fails.
func (s *Service) startParts(w *stream.Writer, known *known) error {
	for i, p := range s.parts {
		if err := p.start(w, known); err != nil {
			for _, begun := range s.parts[:i] {
				begun.stop()
			}
			return fmt.Errorf("begin to copy: %w", err)
		}
	}
	return nil
}

// attend makes checkpoints, verifies and evicts, until ctx or the writer ends.
func (s *Service) attend(ctx context.Context, r *run) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	if s.config.Verify {
		tasks.Go(func() { s.verifyDaily(ctx, r.connection) })
	}
	tasks.Go(func() { s.extendLocks(ctx, r.connection, r.lock) })
	if s.objects.Evicts() {
		tasks.Go(func() { s.evict(ctx, r) })
	}
	return s.keepPoints(ctx, r)
}

// keepPoints makes a checkpoint at once and then when one is due. One that fails for
// another reason than the store is tried again: after checkpointEvery if it could not read the log back, of which it may have read
// much, unless it only lacks space or the log lacks something more since.
func (s *Service) keepPoints(ctx context.Context, r *run) error {
	w := r.writer
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var tried time.Time
	wanted, gap, lacks := true, checkpointGap, s.gaps.Load()
	for {
		if since := time.Since(tried); since > gap && (wanted || isDue(w.Status(), since)) {
			tried = time.Now()
			err := s.checkpoint(ctx, w)
			wanted, gap = err != nil, checkpointGap
			if errors.Is(err, errLogUnread) && !errors.Is(err, objectstore.ErrUnavailable) && !isNoSpace(err) {
				gap = checkpointEvery
			}
			if !wanted {
				r.checkpointed.Store(tried.UnixNano())
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.Done():
			return w.Err()
		case <-s.soon:
			wanted = true
			if more := s.gaps.Load(); more != lacks {
				gap, lacks = checkpointGap, more
			}
		case <-ticker.C:
		}
	}
}

// isDue reports whether there is reason for another checkpoint.
func isDue(status stream.Status, since time.Duration) bool {
	if status.Stored == status.Point.Through && status.Backlog == 0 {
		return false
	}
	return since > checkpointEvery || status.Replay > checkpointBytes
}

// checkpoint stores a checkpoint.
func (s *Service) checkpoint(ctx context.Context, w *stream.Writer) error {
	lacks := s.gaps.Load()
	_, err := w.Checkpoint(ctx, s.entries)
	if err == nil {
		s.succeed(lacks)
		err = s.saveCovered()
	}
	if err == nil && s.currentState().Foreign {
		err = s.setState(func(state *State) { state.Foreign = false })
	}
	switch {
	case ctx.Err() != nil, w.Err() != nil:
		return err
	case err != nil:
		s.fail(err)
		return err
	}
	return nil
}

// saveCovered notes how far the copy came, unless the log lacks something again.
func (s *Service) saveCovered() error {
	st := s.Status()
	if st.State != model.OffsiteCopying || st.Point == nil {
		return nil
	}
	return s.setState(func(state *State) { state.Covered = *st.Point })
}

// entries returns the state of all parts.
func (s *Service) entries(ctx context.Context) ([]stream.Entry, error) {
	var all []stream.Entry
	for _, p := range s.parts {
		entries, err := p.entries(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

// endWriter stores what is not stored yet, if the service is closed and the store
// works, and closes the writer. What remains is on this machine, and the next run stores it.
func (s *Service) endWriter(ctx context.Context, w *stream.Writer) error {
	patience, end := endPatienceAway, context.WithoutCancel(ctx)
	if closing := s.closing(); closing != nil && w.Status().Problem.Since.IsZero() {
		patience, end = endPatience, closing
	}
	end, cancel := context.WithTimeout(end, patience)
	defer cancel()
	if s.closing() != nil && patience == endPatience {
		if err := s.checkpoint(end, w); err != nil {
			s.core.Log.Warn("the last checkpoint off-site is left to the next start", "error", err)
		}
	}
	err := w.Close(end)
	s.ended(w)
	return err
}
