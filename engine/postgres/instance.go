package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// instance is one supervised postmaster. Its changes hold busy. While it is
// followed, a goroutine (keep) waits for its exit, restarts it, and owns proc.
type instance struct {
	id          string
	log         *slog.Logger
	report      func(State, string)
	anotherPort func() (int, error)

	life context.Context // ends when the instance stops for good
	end  context.CancelFunc
	busy chan struct{} // holds one token while the instance is being changed

	mu     sync.Mutex
	spec   Spec
	proc   *process // nil when there is none
	state  State
	reason string

	unfollow context.CancelFunc // ends keep; guarded by busy, like ended
	ended    chan struct{}      // closed when keep has ended; nil when it never began
}

func newInstance(spec Spec, log *slog.Logger) *instance {
	life, end := context.WithCancel(context.Background())
	return &instance{
		id: spec.ID, spec: spec, log: log.With("database", spec.ID),
		life: life, end: end, busy: make(chan struct{}, 1),
	}
}

// acquire waits until the caller may change the instance.
func (i *instance) acquire(ctx context.Context) error {
	select {
	case i.busy <- struct{}{}:
		if i.life.Err() != nil {
			i.release()
			return ErrUnknownInstance // stopped during the wait
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change of the instance: %w", ctx.Err())
	}
}

func (i *instance) release() { <-i.busy }

// within returns a context that ends with ctx or when the instance stops.
func (i *instance) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(i.life, func() { cancel(errors.New("the instance is being stopped")) })
	return ctx, func() { unhook(); cancel(nil) }
}

func (i *instance) start(ctx context.Context) error {
	if err := i.acquire(ctx); err != nil {
		return err
	}
	defer i.release()
	i.enter(StateStarting, "")
	err := i.bringUp(ctx)
	if err != nil {
		i.enter(StateFailed, err.Error())
	}
	return err
}

// bringUp launches the postmaster and follows it. The caller holds busy.
func (i *instance) bringUp(ctx context.Context) error {
	within, cancel := i.within(ctx)
	defer cancel()
	p, err := i.launchOnFreePort(within)
	if err != nil {
		return err
	}
	i.enter(StateRunning, "")
	i.follow(p)
	return nil
}

// launchOnFreePort launches the postmaster, on another port if a foreign process
// uses its own and another is available. The caller holds busy.
func (i *instance) launchOnFreePort(ctx context.Context) (*process, error) {
	if err := i.choosePort(); err != nil {
		return nil, err
	}
	p, err := launch(ctx, i.specification(), i.log)
	if !errors.Is(err, ErrPortInUse) {
		return p, err
	}
	port, moveErr := i.anotherPort()
	if moveErr != nil {
		return nil, errors.Join(err, moveErr)
	}
	// A killed postmaster leaves its socket behind, which is named by the port. It may be another's now.
	if err := i.clearSocket(); err != nil {
		i.log.Warn("remove the socket of the former port", "error", err)
	}
	i.mu.Lock()
	i.spec.Config.Port = port
	i.mu.Unlock()
	return launch(ctx, i.specification(), i.log)
}

// stop ends the instance for good.
func (i *instance) stop(ctx context.Context) error {
	i.end() // makes a holder of busy that is starting it give up
	i.busy <- struct{}{}
	defer i.release()
	err := i.halt(ctx)
	i.enter(StateStopped, "")
	return err
}

// clearSocket removes the socket of an instance that was dead when it was
// stopped, or that did not start.
func (i *instance) clearSocket() error {
	return i.specification().Config.ClearSocket()
}

// halt ends keep, then the process, including one that serves but could not be
// adopted yet. Its error wraps ErrMayRun unless no process is left. The caller holds busy.
func (i *instance) halt(ctx context.Context) (err error) {
	i.leave()
	p := i.process()
	if p == nil {
		if p, err = adopt(i.specification().Dir); err != nil {
			return fmt.Errorf("%w: %w", ErrMayRun, err)
		}
	}
	if p == nil {
		return nil
	}
	err = p.stop(ctx)
	i.setProcess(nil)
	if err != nil && !p.gone() {
		return fmt.Errorf("%w: %w", ErrMayRun, err)
	}
	return err
}

// restart stops the postmaster, by force after patience, and starts it with the
// changed specification.
func (i *instance) restart(ctx context.Context, patience time.Duration, change func(*Spec)) error {
	if err := i.acquire(ctx); err != nil {
		return err
	}
	defer i.release()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := i.halt(stopping); err != nil {
		i.log.Warn("restart", "error", err)
	}
	i.mu.Lock()
	change(&i.spec)
	i.mu.Unlock()
	i.enter(StateStarting, "")
	err := i.bringUp(ctx)
	if err != nil && i.life.Err() == nil {
		i.enter(StateDown, err.Error())
		i.follow(nil)
	}
	return err
}

// detach releases the process and leaves it running.
func (i *instance) detach() {
	i.end()
	i.busy <- struct{}{}
	defer i.release()
	i.leave()
	if p := i.process(); p != nil {
		p.detach()
		i.setProcess(nil)
	}
}

// enter records a state, and reports it if the state or the reason has changed.
func (i *instance) enter(state State, reason string) {
	i.mu.Lock()
	same := i.state == state && i.reason == reason
	i.state, i.reason = state, reason
	i.mu.Unlock()
	if !same {
		i.report(state, reason)
	}
}

func (i *instance) specification() Spec {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.spec
}

func (i *instance) status() (State, string, int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.proc == nil {
		return i.state, i.reason, 0
	}
	return i.state, i.reason, i.proc.pid
}

func (i *instance) process() *process {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.proc
}

func (i *instance) setProcess(p *process) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.proc = p
}
