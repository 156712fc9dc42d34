package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// instance is one supervised postmaster. Changes hold busy. While it is followed,
// a goroutine (keep) waits for its exit and restarts it, and owns proc.
type instance struct {
	id          string
	log         *slog.Logger
	report      func(State, string)
	anotherPort func() (int, error)

	life context.Context // ends when the instance is to stop for good
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

// acquire waits for its turn to change the instance.
func (i *instance) acquire(ctx context.Context) error {
	select {
	case i.busy <- struct{}{}:
		if i.life.Err() != nil {
			i.release()
			return ErrUnknownInstance // stopped while we waited
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change of the instance: %w", ctx.Err())
	}
}

func (i *instance) release() { <-i.busy }

// within returns ctx ended by the instance's end, too.
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
	p, err := i.launchSomewhere(within)
	if err != nil {
		return err
	}
	i.enter(StateRunning, "")
	i.follow(p)
	return nil
}

// launchSomewhere launches the postmaster, on another port when a foreign
// process has its own and there is another to be had. The caller holds busy.
func (i *instance) launchSomewhere(ctx context.Context) (*process, error) {
	p, err := launch(ctx, i.specification(), i.log)
	if !errors.Is(err, ErrPortInUse) {
		return p, err
	}
	port, moveErr := i.anotherPort()
	if moveErr != nil {
		return nil, errors.Join(err, moveErr)
	}
	// One that was killed has left its socket, which is named by the port.
	socket := SocketPath(i.spec.Config.SocketDir, i.spec.Config.Port)
	_, _ = os.Remove(socket), os.Remove(socket+".lock")
	i.mu.Lock()
	i.spec.Config.Port = port
	i.mu.Unlock()
	return launch(ctx, i.specification(), i.log)
}

// stop ends the instance for good.
func (i *instance) stop(ctx context.Context) error {
	i.end() // a holder of busy that is starting it gives up
	i.busy <- struct{}{}
	defer i.release()
	err := i.halt(ctx)
	i.enter(StateStopped, "")
	return err
}

// clearSocket removes the socket of an instance that was dead when it was
// stopped, or did not come up.
func (i *instance) clearSocket() error {
	config := i.specification().Config
	return clearSocket(SocketPath(config.SocketDir, config.Port))
}

// halt ends keep, and then the process, one that serves and could not be
// adopted yet too. The caller holds busy.
func (i *instance) halt(ctx context.Context) (err error) {
	i.leave()
	p := i.process()
	if p == nil {
		p, err = adopt(i.specification().Dir)
	}
	if p == nil {
		return err
	}
	err = p.stop(ctx)
	i.setProcess(nil)
	return err
}

// restart stops the postmaster, by force after patience, and starts it with
// the changed specification.
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

// detach lets go of the process and leaves it running.
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

// enter records a state and reports it, when it is another or has another
// reason.
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
