package postgres

import (
	"context"
	"time"

	"holdfast/engine/postgres/binaries"
)

// The back-off between two attempts to restart an instance: no delay before the
// first, then a delay that doubles. failuresUntil failures in a row make the
// instance failed.
const (
	firstDelay    = 100 * time.Millisecond
	longestDelay  = 30 * time.Second
	failuresUntil = 5
)

// stableAfter is how long a postmaster must have run for its end not to count as
// another failure in a row.
const stableAfter = 10 * time.Second

// logEvery is how often the size of the log is checked. A tenant can write
// hundreds of megabytes a second.
const logEvery = time.Second

// follow begins to keep the instance up. p is its postmaster; if p is nil, follow
// starts one first. The caller holds busy, and keep is not running.
func (i *instance) follow(p *process) {
	i.setProcess(p)
	ctx, cancel := context.WithCancel(i.life)
	ended := make(chan struct{})
	i.unfollow, i.ended = cancel, ended
	go func() {
		defer close(ended)
		i.keep(ctx, p)
	}()
}

// leave ends keep and waits for it. The caller holds busy.
func (i *instance) leave() {
	if i.ended != nil {
		i.unfollow()
		<-i.ended
	}
}

// keepUp starts a new instance in the background and keeps it up until told
// otherwise.
func (i *instance) keepUp() error {
	if err := i.acquire(context.Background()); err != nil {
		return err
	}
	defer i.release()
	i.enter(StateStarting, "")
	i.follow(nil)
	return nil
}

// keep restarts the instance after every exit until ctx ends.
func (i *instance) keep(ctx context.Context, p *process) {
	var b backoff
	for {
		if p != nil {
			began := time.Now()
			if !i.attend(ctx, p) {
				return
			}
			if time.Since(began) > stableAfter {
				b = backoff{}
			}
			i.noteEnd(p)
		}
		if p = i.revive(ctx, &b); p == nil {
			return
		}
	}
}

// attend waits for the exit of p, and ends it if its recovery stands still. It returns false if ctx ends first.
func (i *instance) attend(ctx context.Context, p *process) bool {
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	stillTick := time.NewTicker(stillEvery)
	defer stillTick.Stop()
	var still stillness
	for {
		select {
		case <-p.done:
			return p.exited && ctx.Err() == nil
		case <-ctx.Done():
			return false
		case <-tick.C:
			err := rotateLog(i.specification().Dir, logSize, func() error { return p.signal(logrotate) })
			if err != nil {
				i.log.Warn("rotate server log", "error", err)
			}
		case <-stillTick.C:
			if still.look(p) {
				i.log.Error("the recovery of the server stands still: the server is started anew", "pid", p.pid)
				if err := p.kill(); err != nil {
					i.log.Error("end a server whose recovery stands still", "pid", p.pid, "error", err)
				}
			}
		}
	}
}

// noteEnd records that p has ended: once immediately, and again with the last lines
// of its log, if there are any.
func (i *instance) noteEnd(p *process) {
	dir := i.specification().Dir
	reason := "the server process ended: " + p.reason
	i.mu.Lock()
	i.proc, i.state, i.reason = nil, StateDown, reason
	i.mu.Unlock()
	i.report(StateDown, reason)
	awaitLog(dir, 100*time.Millisecond)
	if words := p.born.lastWords(p.pid, 3); words != "" {
		reason += binaries.Indent(words)
		i.enter(StateDown, reason)
	}
	i.log.Error("postmaster ended", "pid", p.pid, "reason", reason)
}

// revive tries to start the instance until it runs. It returns nil if ctx ends.
func (i *instance) revive(ctx context.Context, b *backoff) *process {
	for {
		if sleep(ctx, b.delay()) != nil {
			return nil
		}
		p, err := i.attempt(ctx)
		if ctx.Err() != nil {
			return nil // attempt has already handed over p, if any
		}
		if err == nil {
			return p
		}
		i.log.Error("bring postmaster back", "attempt", b.tries, "error", err)
		if b.tries >= failuresUntil {
			i.enter(StateFailed, err.Error())
		} else {
			i.enter(StateDown, err.Error())
		}
	}
}

// attempt launches the postmaster once, holding busy.
func (i *instance) attempt(ctx context.Context) (*process, error) {
	if err := i.acquire(ctx); err != nil {
		return nil, err
	}
	defer i.release()
	p, err := i.launchOnFreePort(ctx)
	if err != nil {
		return nil, err
	}
	i.setProcess(p)
	i.enter(StateRunning, "")
	return p, nil
}

// backoff counts attempts and spaces them.
type backoff struct {
	tries int
}

// delay returns how long to wait before the next attempt, and counts it.
func (b *backoff) delay() time.Duration {
	b.tries++
	if b.tries == 1 {
		return 0
	}
	return min(firstDelay<<min(b.tries-2, 20), longestDelay)
}
