package operator

import (
	"context"
	"time"

	"holdfast/engine/model"
)

// sharedIdle is how long the shared sandbox stays without a client: the next package of
// `go test ./...` then finds the templates.
const sharedIdle = 30 * time.Second

// shared is the sandbox of clients without a lease of their own. The first one has it
// created.
type shared struct {
	ready chan struct{} // closed when suite or err is set
	suite *suite
	err   error
	left  chan struct{} // gets a word when the last client has left
	users int           // guarded by Leases.mu
}

// sharedSuite returns the suite that all clients without a lease share. The caller calls
// leave when it no longer uses it.
func (a Appliance) sharedSuite(ctx context.Context) (_ *suite, leave func(), err error) {
	s := a.joinShared()
	leave = func() { a.Leases.leaveShared(s) }
	select {
	case <-s.ready:
		err = s.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return s.suite, leave, nil
}

func (a Appliance) joinShared() *shared {
	l := a.Leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared == nil {
		s := &shared{ready: make(chan struct{}), left: make(chan struct{}, 1)}
		l.shared = s
		a.Core.Background(func(ctx context.Context) { a.holdShared(ctx, s) })
	}
	l.shared.users++
	return l.shared
}

func (l *Leases) leaveShared(s *shared) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
}

// retireShared makes the next client start another shared sandbox. It returns false if
// this one has clients and needs none.
func (l *Leases) retireShared(s *shared, inUse bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users > 0 && !inUse {
		return false
	}
	if l.shared == s {
		l.shared = nil
	}
	return true
}

// holdShared creates the shared sandbox, and removes it when it has had no client for a
// while.
func (a Appliance) holdShared(ctx context.Context, s *shared) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.Leases.closing, cancel)()
	l := lease{a, &model.Call{
		Operation: model.Operation{Action: model.ActionDatabaseCreate},
		Actor:     model.Actor{Type: model.ActorOperator, Name: "tests"},
	}, func(SandboxEvent) {}}
	if !a.Leases.enter() {
		a.Leases.retireShared(s, true)
		s.err = errClosing
		close(s.ready)
		return
	}
	defer a.Leases.leave()
	made, err := l.create(ctx, NewSandbox{Organization: model.DefaultName})
	l.Core.Finish(l.call, err)
	if err != nil {
		a.Leases.retireShared(s, true)
		s.err = err
		close(s.ready)
		return
	}
	held, release := l.Databases.SandboxHold(ctx, made.ID)
	tests, err := l.Databases.NewSuite(made)
	if err == nil {
		s.suite = newSuite(tests)
		close(s.ready)
		a.Leases.awaitUnused(held, s)
		s.suite.close()
	} else {
		s.err = err
		a.Leases.retireShared(s, true)
		close(s.ready)
	}
	release()
	if err := l.remove(context.WithoutCancel(ctx), made.ID); err != nil {
		l.Core.Log.Warn("remove the sandbox that tests share", "database", made.ID, "error", err)
	}
}

// awaitUnused returns when the shared sandbox has had no client for sharedIdle, or when
// held ends, and the next client gets another sandbox.
func (l *Leases) awaitUnused(held context.Context, s *shared) {
	idle := time.NewTimer(sharedIdle)
	defer idle.Stop()
	for {
		select {
		case <-s.left:
			idle.Reset(sharedIdle)
		case <-idle.C:
			if l.retireShared(s, false) {
				return
			}
		case <-held.Done():
			l.retireShared(s, true)
			return
		}
	}
}
