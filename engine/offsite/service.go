package offsite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/engine/recovery"
)

// Service copies the appliance while it works. It does nothing where no store is
// configured.
type Service struct {
	core      *core.Core
	databases *databases.Service
	objects   *objects.Service
	config    core.Offsite
	backups   *recovery.Service
	location  Location
	parts     []part
	plan      *planStore    // of the recovery into this data directory, nil without one
	made      time.Time     // when New was called
	recovery  *secondPhase  // nil unless the appliance is being recovered
	soon      chan struct{} // a checkpoint is wanted soon

	reading  sync.Mutex
	readFrom *connection // for bodies that are not here yet; nil until it is needed

	unreadable unreadable

	cancel context.CancelFunc // set by Start
	tasks  sync.WaitGroup

	mu      sync.Mutex
	ending  context.Context //nolint:containedctx // of Close, which has set it before it cancels
	state   State           // as on disk
	writer  *stream.Writer  // nil while there is none
	known   *known          // what the store has, with the writer
	failure failure
	foreign []string  // keys of claims that the run passed over as it began
	whole   uint64    // the number of gaps that the newest checkpoint of the run closes
	reached time.Time // the newest point that the status has named

	// gaps counts what the log lacks until the next checkpoint: the beginning of a run, and
	// changes that were too many.
	gaps atomic.Uint64
}

// failure is why nothing is copied at the moment.
type failure struct {
	err   error
	since time.Time
}

// New returns the service. It fails if the configuration is wrong or the state cannot be read. A
// machine from which another one has taken over is read-only at once, whatever
// is configured.
func New(c *core.Core, d *databases.Service, o *objects.Service, r *recovery.Service) (*Service, error) {
	s := &Service{core: c, databases: d, objects: o, backups: r, config: c.Config.Offsite, made: time.Now(), soon: make(chan struct{}, 1)}
	var err error
	if s.state, err = ReadState(c.Config.DataDir); err != nil {
		return nil, err
	}
	o.FetchWith(s.fetchBody)
	if s.state.Fenced != nil {
		c.SetReadOnly(s.state.Fenced.message())
	}
	if s.Enabled() {
		if s.location, err = locationOf(s.config); err != nil {
			return nil, err
		}
	}
	if s.plan, err = openPlan(c.Config.DataDir); err != nil {
		return nil, err
	}
	if s.recovery, err = openSecondPhase(c, o, r, s.plan, s.reader); err != nil {
		return nil, err
	}
	if s.recovery != nil && s.recovery.isPending() {
		c.KeepDiscarded() // until ContinueRecovery
	}
	if !s.Enabled() {
		return s, nil
	}
	s.parts = s.newParts(o, r)
	return s, nil
}

// newParts returns everything that is copied.
func (s *Service) newParts(o *objects.Service, r *recovery.Service) []part {
	bodies := newObjectsPart(s.core, &s.unreadable)
	o.CopyWith(bodies.isCopied)
	return []part{
		newMetadataPart(s.core.Meta),
		newSecretPart(s.core.Config.DataDir, s.core.Log, &s.unreadable, s.CheckpointSoon),
		newDatabasePart(r, s.core, &s.unreadable),
		bodies,
	}
}

// Enabled reports whether a store is configured.
func (s *Service) Enabled() bool { return s.config.URL != "" }

// locationOf returns the location that is configured.
func locationOf(c core.Offsite) (at Location, err error) {
	at.URL = c.URL
	for _, source := range []struct {
		text  model.Secret
		parse func(string) (Keys, error)
	}{{c.Passphrases, ParsePassphrases}, {c.Identities, ParseIdentities}} {
		if source.text.IsZero() {
			continue
		}
		keys, err := source.parse(source.text.Reveal())
		if err != nil {
			return at, err
		}
		at.Keys = at.Keys.And(keys)
	}
	if c.Opened != nil {
		at.Keys.unwrapped = c.Opened
	}
	return at, nil
}

// Start begins to copy. It does not wait for the store.
func (s *Service) Start() {
	if !s.Enabled() || s.state.Fenced != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.tasks.Go(func() { s.run(ctx) })
	s.tasks.Go(func() { s.watch(ctx) })
	if s.config.Verify {
		s.core.Background(s.restoreWeekly)
	}
	s.core.Background(s.bringObjectsBack)
}

// Close stores what is not stored yet, for as long as ctx and the store allow, and
// ends the service. Everything else that changes the appliance has ended before.
func (s *Service) Close(ctx context.Context) {
	defer s.closeReader()
	if s.cancel == nil {
		return
	}
	s.mu.Lock()
	s.ending = ctx
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
}

// ContinueRecovery refuses a start without the store where a recovery still needs it. It
// returns the databases in the order in which they are brought back, none where nothing is recovered.
//
// The first time it drops the objects whose bytes the copy did not have yet.
func (s *Service) ContinueRecovery(ctx context.Context, o *objects.Service) (order []string, err error) {
	if s.recovery == nil {
		return nil, nil
	}
	if !s.Enabled() && s.recovery.isPending() {
		return nil, model.Errorf(model.CodeConflict, "the recovery of this appliance is not complete, and needs the copy: start it with --offsite and --offsite-passphrase-file, as `holdfast recover` had them")
	}
	if s.recovery.isPending() {
		err = s.recovery.dropLost(ctx, o)
	}
	s.core.ReleaseDiscarded()
	return s.recovery.order(), err
}

// FinishRecovery brings back what is still in the store alone, once the databases were started.
func (s *Service) FinishRecovery(ctx context.Context) {
	if s.recovery == nil || !s.recovery.isPending() {
		return
	}
	err := s.recovery.finish(ctx)
	if err != nil && ctx.Err() == nil {
		s.core.Log.Error("the recovery is not complete; the next start goes on", "error", err)
	}
	if err == nil {
		s.bringObjectsBack(ctx) // which forgets where they were
	}
}

// CheckpointSoon asks for a checkpoint, because the log lacks something until then.
func (s *Service) CheckpointSoon() {
	s.gaps.Add(1)
	s.wakePoints()
}

// wakePoints asks for a checkpoint soon.
func (s *Service) wakePoints() {
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

func (s *Service) currentState() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// setState changes the state durably.
func (s *Service) setState(change func(*State)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	change(&next)
	if err := next.Write(s.core.Config.DataDir); err != nil {
		return err
	}
	s.state = next
	return nil
}
