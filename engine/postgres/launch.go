package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/engine/postgres/binaries"
)

// ErrPortInUse says that another process holds the instance's TCP port.
var ErrPortInUse = errors.New("the port is in use by another process")

// Spec is everything needed to run an instance.
type Spec struct {
	ID     string
	Bin    binaries.Set
	Dir    string // the data directory, absolute
	Config Config // an empty SocketDir means SocketDir(Dir)
	HBA    HBA
	Nice   int // niceness of the postmaster, 0 = that of this process
	// Proxied is set if a proxy holds the port of the clients. The server then listens
	// on a port that is chosen when it starts.
	Proxied *Proxied
}

// launch writes the configuration, and starts a postmaster or adopts the one that
// already serves the directory. It returns once the postmaster accepts
// connections. If ctx is cancelled first, launch stops the postmaster again. It
// replaces an adopted postmaster that runs with another configuration or is about to end.
func launch(ctx context.Context, spec Spec, log *slog.Logger) (*process, error) {
	running, err := readPIDFile(spec.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read postmaster.pid: %w", err)
	}
	changed, err := configure(spec)
	if err != nil {
		return nil, err
	}
	p, err := adopt(spec.Dir)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return start(ctx, spec)
	}
	p.proxied = spec.Proxied
	log.Info("postmaster adopted", "pid", p.pid)
	if changed || running.port != spec.Config.Port || running.socketDir != spec.Config.SocketDir {
		return p.replace(ctx, spec)
	}
	err = awaitReady(ctx, spec, p)
	if errors.Is(err, errStopping) || p.gone() {
		return p.replace(ctx, spec)
	}
	if errors.Is(err, errStandsStill) {
		log.Error("the recovery of the server stands still: the server is started anew", "pid", p.pid)
		if err := p.kill(); err != nil {
			return nil, fmt.Errorf("end adopted postmaster: %w", err)
		}
		return start(ctx, spec)
	}
	serves := err == nil || IsFull(err) // other clients, if not the appliance
	if err == nil {
		// Always: the process that wrote the rules may have died before it sent the
		// signal.
		err = reloadProcess(ctx, spec, p)
	}
	if err == nil {
		return p, nil
	}
	err = fmt.Errorf("adopt postmaster: %w", err)
	if serves && !errors.Is(ctx.Err(), context.Canceled) {
		p.detach() // for the next attempt to adopt
		return nil, err
	}
	return nil, errors.Join(err, p.kill())
}

// adoptedStop is how long the fast shutdown of an adopted postmaster may take.
const adoptedStop = time.Minute

// replace stops an adopted postmaster, by force after adoptedStop, and starts another.
func (p *process) replace(ctx context.Context, spec Spec) (*process, error) {
	stopping, cancel := context.WithTimeout(ctx, adoptedStop)
	defer cancel()
	if err := p.stop(stopping); !p.gone() {
		return nil, fmt.Errorf("restart adopted postmaster: %w", err)
	}
	return start(ctx, spec)
}

// configure writes everything PostgreSQL reads at its start, and reports whether
// the settings changed.
func configure(spec Spec) (changed bool, err error) {
	if err := os.MkdirAll(filepath.Join(spec.Dir, logDir), 0o700); err != nil {
		return false, fmt.Errorf("make log directory: %w", err)
	}
	if _, err = WriteHBA(spec.Dir, spec.HBA); err != nil {
		return false, err
	}
	return WriteConfig(spec.Bin, spec.Dir, spec.Config)
}

// start starts a postmaster in a directory that no other serves.
func start(ctx context.Context, spec Spec) (*process, error) {
	deadline := time.Now().Add(sharedMemoryWait)
	for {
		if err := errors.Join(clearRemains(ctx, spec.Dir), spec.Config.ClearSocket(), configureReplay(spec)); err != nil {
			return nil, err
		}
		p, err := startOnce(ctx, spec)
		// Processes of a dead postmaster that are not visible from here may still hold
		// its shared memory; they end soon.
		if err == nil || !strings.Contains(err.Error(), "shared memory block") || time.Now().After(deadline) {
			return p, err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// sharedMemoryWait is how long a start waits for a dead postmaster's children to
// release its shared memory.
const sharedMemoryWait = 10 * time.Second

func startOnce(ctx context.Context, spec Spec) (*process, error) {
	mark := markLog(spec.Dir)
	p, err := startProcess(spec.Bin, spec.Dir, spec.Nice)
	if err != nil {
		return nil, fmt.Errorf("start postmaster: %w", err)
	}
	p.proxied = spec.Proxied
	err = awaitReady(ctx, spec, p)
	if err != nil {
		err = errors.Join(err, p.kill())
		awaitLog(spec.Dir, time.Second)
	}
	lines := mark.tail(10)
	if portTaken(mark.head(), p.pid) {
		err = errors.Join(fmt.Errorf("port %d: %w", spec.Config.Port, ErrPortInUse), p.kill())
	}
	if err != nil {
		return nil, fmt.Errorf("start postmaster: %w%s", err, binaries.Indent(lines))
	}
	p.born = markLog(spec.Dir)
	return p, nil
}

// awaitLog waits, for limit at most, until the log of a postmaster that has ended
// is complete: the collector, a separate process, drains its pipe and exits.
func awaitLog(dir string, limit time.Duration) {
	for began := time.Now(); len(processesOf(dir)) > 0 && time.Since(began) < limit; {
		time.Sleep(5 * time.Millisecond)
	}
}

// portTaken reports whether the postmaster logged that an address was in use.
// With several addresses PostgreSQL continues if it could bind one of them, and
// clients of the other reach another program. Only a line of the postmaster
// itself counts: tenants can write to the log, too.
func portTaken(lines string, pid int) bool {
	for line := range strings.Lines(lines) {
		if text, own := writtenBy(line, pid); own && strings.HasPrefix(text, "LOG:  could not bind") && strings.Contains(text, "already in use") {
			return true
		}
	}
	return false
}

// errStopping says that somebody has told a postmaster to stop.
var errStopping = errors.New("it shuts down")

// awaitReady waits until the superuser can connect. The error says that the
// postmaster exited or is about to, that its recovery stands still, or that ctx ended and whether the server was full then.
func awaitReady(ctx context.Context, spec Spec, p *process) error {
	stillTick := time.NewTicker(stillEvery)
	defer stillTick.Stop()
	var still stillness
	var full error
	for {
		file, err := readPIDFile(spec.Dir)
		switch {
		case err != nil || file.pid != p.pid:
		case file.stopping():
			return errStopping
		case file.accepting():
			conn, err := connect(ctx, spec, p.lockout(spec.Dir), "postgres")
			if err == nil {
				return conn.Close(ctx)
			}
			if full = nil; IsFull(err) {
				full = err
			}
		}
		select {
		case <-p.done:
			return endedError{p.reason, p.killed}
		case <-ctx.Done():
			return fmt.Errorf("wait until it accepts connections: %w", errors.Join(ctx.Err(), full))
		case <-stillTick.C:
			if still.look(p) {
				return errStandsStill
			}
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// How long processes of a dead postmaster may live before SIGQUIT, and then
// before SIGKILL. Idle ones notice its death at once, busy ones only when they
// next wait, and a database should be back in 2 s.
const (
	orphanTimeout = 100 * time.Millisecond
	orphanQuit    = 400 * time.Millisecond
)

// clearRemains removes what a postmaster that did not shut down cleanly left in
// dir: its children, and a postmaster.pid whose number another process now has.
// The caller has checked that no postmaster serves dir.
func clearRemains(ctx context.Context, dir string) error {
	file, err := readPIDFile(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it shut down cleanly
	}
	if err != nil {
		return fmt.Errorf("read postmaster.pid: %w", err)
	}
	if err := endOrphans(ctx, dir); err != nil {
		return err
	}
	if file.pid != 0 && syscall.Kill(file.pid, 0) != nil {
		return nil // PostgreSQL replaces a file whose process has ended
	}
	if err := os.Remove(pidFilePath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove stale postmaster.pid: %w", err)
	}
	return nil
}

// endOrphans waits, with increasing force, until no PostgreSQL process works in
// dir. The processes hold nothing worth saving: without their postmaster the next
// one recovers from the WAL.
func endOrphans(ctx context.Context, dir string) error {
	began := time.Now()
	for {
		pids := processesOf(dir)
		if len(pids) == 0 {
			return nil
		}
		waited := time.Since(began)
		for _, pid := range pids {
			switch {
			case waited > orphanTimeout+orphanQuit:
				_ = syscall.Kill(pid, syscall.SIGKILL)
			case waited > orphanTimeout:
				_ = syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the processes of a dead postmaster: %w", err)
		}
	}
}

// sleep waits for d. It returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
