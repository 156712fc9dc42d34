package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// State is what an instance is doing.
type State string

// The states. A failed instance is still tried every 30 s: what made it fail,
// a full disk, may pass.
const (
	StateStarting State = "starting"
	StateRunning  State = "running"
	StateDown     State = "down"   // it ended by itself and is being brought back
	StateFailed   State = "failed" // it could not be brought back, which needs a person
	StateStopped  State = "stopped"
)

// The errors of a supervisor about ids.
var (
	ErrUnknownInstance  = errors.New("no such instance is supervised")
	ErrInstanceExists   = errors.New("the instance is supervised already")
	ErrSupervisorClosed = errors.New("the supervisor is closed")
)

// SupervisorOptions are what a supervisor is told once.
type SupervisorOptions struct {
	Log *slog.Logger // nil = nowhere
	// Changed, when set, hears every change of an instance's state, one at a
	// time for each instance. reason is for a person; with StateDown and
	// StateFailed it says how the process ended and its last log lines. It
	// may not call the supervisor's methods that change that instance.
	Changed func(id string, state State, reason string)
	// PortTaken, when set, is asked for another port when a foreign process
	// has that of an instance. The same rule holds for it as for Changed.
	PortTaken func(id string) (int, error)
}

// Supervisor keeps postmasters running. Its methods may be called from any
// goroutine; those that change one instance wait for each other.
type Supervisor struct {
	opts SupervisorOptions

	mu        sync.Mutex
	instances map[string]*instance
	closed    bool
}

// NewSupervisor returns a supervisor of no instances. Close or Detach ends it.
func NewSupervisor(opts SupervisorOptions) *Supervisor {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Changed == nil {
		opts.Changed = func(string, State, string) {}
	}
	if opts.PortTaken == nil {
		opts.PortTaken = func(string) (int, error) { return 0, errors.New("there is no other") }
	}
	return &Supervisor{opts: opts, instances: map[string]*instance{}}
}

// Start starts the instance, or adopts the postmaster that already serves its
// directory, and returns once it accepts connections. From then on it is kept
// running. When Start returns an error the id is free and nothing runs, but for
// a postmaster that served before and had no place for the supervisor;
// ErrPortInUse and ErrInstanceExists are told apart.
func (s *Supervisor) Start(ctx context.Context, spec Spec) error {
	i, err := s.claim(spec)
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.ID, err)
	}
	if err := i.start(ctx); err != nil {
		err = errors.Join(err, i.clearSocket())
		s.forget(i)
		return fmt.Errorf("start %s: %w", spec.ID, err)
	}
	return nil
}

// Keep is Start that does not wait and does not give up: the instance is
// brought up, and tried again with back-off when that fails, until it is
// stopped. Changed hears how it goes.
func (s *Supervisor) Keep(spec Spec) error {
	i, err := s.claim(spec)
	if err != nil {
		return fmt.Errorf("keep %s: %w", spec.ID, err)
	}
	return i.keepUp()
}

// Stop shuts the instance down and forgets it: a fast shutdown, and an
// immediate one when ctx ends before it is done. It returns when the process
// is gone; an error says that it took force, or that the id is unknown.
func (s *Supervisor) Stop(ctx context.Context, id string) error {
	return s.act(id, "stop", func(i *instance) error {
		err := errors.Join(i.stop(ctx), i.clearSocket())
		s.forget(i)
		return err
	})
}

// Restart shuts the instance down, at once when a fast shutdown takes longer
// than patience, writes its configuration anew and starts it; it returns once
// connections are accepted. When the start fails the instance is brought back as
// if it had died by itself.
func (s *Supervisor) Restart(ctx context.Context, id string, patience time.Duration) error {
	return s.Reconfigure(ctx, id, patience, func(*Spec) {})
}

// Reconfigure changes the specification of an instance (its port, its
// settings, its binaries; not its ID or Dir) and restarts it with that.
func (s *Supervisor) Reconfigure(ctx context.Context, id string, patience time.Duration, change func(*Spec)) error {
	return s.act(id, "restart", func(i *instance) error { return i.restart(ctx, patience, change) })
}

// Update gives the instance new rules about who may connect. When it returns
// nil they are in force for every connection from now on; sessions that are
// open stay (TerminateSessions ends them). An instance that is down gets them
// before it comes back.
func (s *Supervisor) Update(ctx context.Context, id string, hba HBA) error {
	return s.act(id, "update who may connect to", func(i *instance) error { return i.update(ctx, hba) })
}

// Reload makes the instance read its files again, a new certificate for one.
// When it returns nil the new ones are in force.
func (s *Supervisor) Reload(ctx context.Context, id string) error {
	return s.act(id, "reload", func(i *instance) error { return i.reload(ctx) })
}

// Connect opens a session as [Superuser] over the private socket. Names are
// looked up in pg_catalog alone. The caller closes it.
func (s *Supervisor) Connect(ctx context.Context, id, database string) (*pgx.Conn, error) {
	i, err := s.instance(id)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", id, err)
	}
	return connect(ctx, i.specification(), i.lockout, database)
}

// ConnectLocal opens a session as the role that the instance's rules let the
// appliance be ([HBA].Local): an ordinary role, for work on what a tenant or a
// stranger may have written. The caller closes it.
func (s *Supervisor) ConnectLocal(ctx context.Context, id string) (*pgx.Conn, error) {
	i, err := s.instance(id)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", id, err)
	}
	spec := i.specification()
	return connectAs(ctx, spec, i.lockout, spec.HBA.Database, spec.HBA.Local)
}

// Status returns the state of an instance, the reason given for it and the
// postmaster's process number (0 = none); StateStopped when it is unknown.
func (s *Supervisor) Status(id string) (state State, reason string, pid int) {
	i, err := s.instance(id)
	if err != nil {
		return StateStopped, "", 0
	}
	return i.status()
}

// Close stops all instances, in parallel, as Stop does each. No other can be
// started after it. Closing twice is fine.
func (s *Supervisor) Close(ctx context.Context) error {
	all := s.shut()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for n, i := range all {
		wg.Go(func() {
			if err := i.stop(ctx); err != nil {
				errs[n] = fmt.Errorf("stop %s: %w", i.id, err)
			}
			s.forget(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Detach ends the supervisor and leaves the instances running, for another to
// adopt.
func (s *Supervisor) Detach() {
	for _, i := range s.shut() {
		i.detach()
		s.forget(i)
	}
}

// shut refuses further instances and returns those there are.
func (s *Supervisor) shut() []*instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Values(s.instances))
}

// claim takes the id for a new instance.
func (s *Supervisor) claim(spec Spec) (*instance, error) {
	if spec.Config.SocketDir == "" {
		dir, err := SocketDir(spec.Dir)
		if err != nil {
			return nil, err
		}
		spec.Config.SocketDir = dir
	} else if err := privateDir(spec.Config.SocketDir); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrSupervisorClosed
	}
	if s.instances[spec.ID] != nil {
		return nil, ErrInstanceExists
	}
	i := newInstance(spec, s.opts.Log)
	i.report = func(state State, reason string) { s.opts.Changed(spec.ID, state, reason) }
	i.anotherPort = func() (int, error) { return s.opts.PortTaken(spec.ID) }
	s.instances[spec.ID] = i
	return i, nil
}

func (s *Supervisor) forget(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances[i.id] == i {
		delete(s.instances, i.id)
	}
}

// act does something with an instance; act's words begin the error.
func (s *Supervisor) act(id, words string, do func(*instance) error) error {
	i, err := s.instance(id)
	if err == nil {
		err = do(i)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", words, id, err)
	}
	return nil
}

func (s *Supervisor) instance(id string) (*instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.instances[id]; i != nil {
		return i, nil
	}
	return nil, ErrUnknownInstance
}
