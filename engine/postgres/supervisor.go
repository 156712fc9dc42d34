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

// State is the state of an instance.
type State string

// The states. A failed instance is still retried every 30 s, because the cause,
// such as a full disk, may pass.
const (
	StateStarting State = "starting"
	StateRunning  State = "running"
	StateDown     State = "down"   // it exited on its own and is being restarted
	StateFailed   State = "failed" // it could not be restarted and needs a person
	StateStopped  State = "stopped"
	StateAsleep   State = "asleep" // stopped until Wake, see sleep.go
)

// The errors of a supervisor about ids.
var (
	ErrUnknownInstance  = errors.New("no such instance is supervised")
	ErrInstanceExists   = errors.New("the instance is supervised already")
	ErrSupervisorClosed = errors.New("the supervisor is closed")
	ErrRefusedSettings  = errors.New("PostgreSQL refuses the settings")
	ErrMayRun           = errors.New("the server may still run")
)

// SupervisorOptions are fixed when a supervisor is created.
type SupervisorOptions struct {
	Log *slog.Logger // nil = discard
	// Changed, when set, is called with every change of an instance's state, one at
	// a time for each instance. reason is for people; with StateDown and StateFailed
	// it says how the process ended and its last log lines. Changed must not call
	// methods of the supervisor that change that instance.
	Changed func(id string, state State, reason string)
	// PortTaken, when set, returns another port if a foreign process uses that of an
	// instance. The restriction on Changed applies to it, too.
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
// directory, and returns once it accepts connections. From then on the supervisor
// keeps it running. If Start returns an error, which may wrap ErrPortInUse or
// ErrInstanceExists, the id is free and nothing runs, except a postmaster that
// served before and had no connection slot for the supervisor.
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

// Keep is Start without waiting or giving up: it starts the instance in the
// background and retries with back-off until the instance is stopped. Changed
// reports the progress.
func (s *Supervisor) Keep(spec Spec) error {
	i, err := s.claim(spec)
	if err != nil {
		return fmt.Errorf("keep %s: %w", spec.ID, err)
	}
	return i.keepUp()
}

// Stop shuts the instance down and forgets it: by a fast shutdown, or an
// immediate one if ctx ends first. It returns when the process has ended; an
// error says that force was needed, or that the id is unknown. An error that wraps
// ErrMayRun says that the process could not be found or ended: then its directory
// must stay, and a later Start adopts it.
func (s *Supervisor) Stop(ctx context.Context, id string) error {
	return s.act(id, "stop", func(i *instance) error {
		err := errors.Join(i.stop(ctx), i.clearSocket())
		s.forget(i)
		return err
	})
}

// Restart shuts the instance down, immediately if a fast shutdown takes longer
// than patience, rewrites its configuration and starts it. It returns once the
// instance accepts connections. If the start fails, the supervisor restarts the
// instance as if it had died on its own.
func (s *Supervisor) Restart(ctx context.Context, id string, patience time.Duration) error {
	return s.Reconfigure(ctx, id, patience, func(*Spec) {})
}

// Reconfigure changes the specification of an instance (its port, its settings,
// its binaries; not its ID or Dir) and restarts it.
func (s *Supervisor) Reconfigure(ctx context.Context, id string, patience time.Duration, change func(*Spec)) error {
	return s.act(id, "restart", func(i *instance) error { return i.restart(ctx, patience, change) })
}

// Tune changes the settings of an instance and makes it read them, without a restart:
// those that need one wait for it. An error that wraps ErrRefusedSettings says which
// settings PostgreSQL refuses; nothing has changed then.
func (s *Supervisor) Tune(ctx context.Context, id string, change func(*Config)) error {
	return s.act(id, "change the settings of", func(i *instance) error { return i.tune(ctx, change) })
}

// Update gives the instance new access rules. When it returns nil, they are in
// force for every new connection; open sessions stay (TerminateSessions ends
// them). An instance that is down gets them before it is back.
func (s *Supervisor) Update(ctx context.Context, id string, hba HBA) error {
	return s.act(id, "update who may connect to", func(i *instance) error { return i.update(ctx, hba) })
}

// Assign gives a running instance another specification that needs no restart:
// access rules, and settings that a reload changes. before is what [CheckPrepared]
// returned; a server that was started or reloaded since then is refused. Assign returns
// a session as [Superuser] in the database postgres, under the new specification.
// The caller closes it.
func (s *Supervisor) Assign(ctx context.Context, spec Spec, before Loaded) (conn *pgx.Conn, err error) {
	err = s.act(spec.ID, "assign", func(i *instance) (err error) {
		conn, err = i.assign(ctx, spec, before)
		return err
	})
	return conn, err
}

// Reload makes the instance read its files again, for example a new certificate.
// When it returns nil, the new files are in force.
func (s *Supervisor) Reload(ctx context.Context, id string) error {
	return s.act(id, "reload", func(i *instance) error { return i.reload(ctx) })
}

// Connect opens a session as [Superuser] over the private socket. Names resolve
// only in pg_catalog. The caller closes it.
func (s *Supervisor) Connect(ctx context.Context, id, database string) (*pgx.Conn, error) {
	i, err := s.instance(id)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", id, err)
	}
	return connect(ctx, i.specification(), i.lockout, database)
}

// ConnectLocal opens a session as the role that the instance's rules let the
// appliance use ([HBA].Local): an ordinary role, for work on what a tenant or a
// stranger may have written. The caller closes it.
func (s *Supervisor) ConnectLocal(ctx context.Context, id string) (*pgx.Conn, error) {
	i, err := s.instance(id)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", id, err)
	}
	spec := i.specification()
	return connectAs(ctx, spec, i.lockout, spec.HBA.Database, spec.HBA.Local)
}

// Rules returns who may connect to an instance by its specification. A start brings them
// into force.
func (s *Supervisor) Rules(id string) (HBA, error) {
	i, err := s.instance(id)
	if err != nil {
		return HBA{}, err
	}
	return i.specification().HBA, nil
}

// Status returns the state of an instance, its reason and the postmaster's
// process number (0 = none); StateStopped if the id is unknown.
func (s *Supervisor) Status(id string) (state State, reason string, pid int) {
	i, err := s.instance(id)
	if err != nil {
		return StateStopped, "", 0
	}
	return i.status()
}

// Close stops all instances in parallel, each as Stop does. None can be started
// afterwards. Calling Close twice is fine.
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

// shut refuses further instances and returns the existing ones.
func (s *Supervisor) shut() []*instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Values(s.instances))
}

// claim reserves the id for a new instance.
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
	if spec.Proxied != nil {
		i.anotherPort = spec.Proxied.port
	}
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

// act runs do on an instance; words begin the error.
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
