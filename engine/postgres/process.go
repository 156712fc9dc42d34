package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/engine/postgres/binaries"
)

// process is a postmaster that was started or adopted. Its one goroutine waits
// for the exit and ends with it, or with detach.
type process struct {
	pid     int
	dir     string    // the data directory
	child   *exec.Cmd // nil when adopted
	watch   *watch
	proxied *Proxied      // nil if clients connect directly
	born    logMark       // the log's length when it was started or adopted
	done    chan struct{} // closed when the goroutine has ended
	exited  bool          // after done: it has ended, not merely been released
	reason  string        // after done: how it ended
	killed  bool          // after done: by a signal
}

// maxTitle is how many bytes of the environment are reserved for the titles of a
// server's processes. On Linux PostgreSQL writes a title over its arguments and
// environment, and truncates what does not fit. Titles contain a user, a database
// and an address, and end in the process's activity, which [isIncompleteLogin] reads.
const maxTitle = 256

// startProcess starts `postgres -D dir`. The process is a direct child, not
// pg_ctl's, so that its exit is noticed at once and its status is known. It has
// its own process group, so that Ctrl-C in a terminal does not reach it. Its
// output goes to a file, not a pipe, which would break if it outlives the
// appliance.
func startProcess(bin binaries.Set, dir string, nice int) (*process, error) {
	out, err := os.OpenFile(filepath.Join(dir, logDir, startFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open output of the start: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(bin.Tool("postgres"), "-D", dir)
	cmd.Env = append(bin.Env(), "TITLE_ROOM="+strings.Repeat("-", maxTitle))
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	renice(cmd.Process.Pid, nice)
	w, err := newWatch(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("watch process %d: %w", cmd.Process.Pid, err)
	}
	return follow(dir, cmd.Process.Pid, cmd, w), nil
}

// adopt takes over the postmaster that serves dir; nil if there is none. The
// number in postmaster.pid may belong to another process by now: adopt opens a
// pidfd first and then checks the process's identity.
func adopt(dir string) (*process, error) {
	file, err := readPIDFile(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && file.pid == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read postmaster.pid: %w", err)
	}
	w, err := newWatch(file.pid)
	if errors.Is(err, syscall.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", file.pid, err)
	}
	if !isPostmaster(file.pid, dir) {
		w.close()
		return nil, nil
	}
	return follow(dir, file.pid, nil, w), nil
}

func follow(dir string, pid int, child *exec.Cmd, w *watch) *process {
	p := &process{pid: pid, dir: dir, child: child, watch: w, born: markLog(dir), done: make(chan struct{})}
	go p.wait()
	return p
}

func (p *process) wait() {
	defer close(p.done)
	defer p.watch.close()
	if p.exited = p.watch.wait(); p.exited {
		p.reason = p.reap()
	}
}

// reap collects the exit status if there is one, and describes it.
func (p *process) reap() string {
	var status syscall.WaitStatus
	if p.child != nil {
		_ = p.child.Wait() // its error repeats the status
		status, _ = p.child.ProcessState.Sys().(syscall.WaitStatus)
	} else if pid, err := syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil); pid != p.pid || err != nil {
		return "it ended" // adopted: init has the status
	}
	switch {
	case status.Signaled():
		p.killed = true
		return fmt.Sprintf("killed by signal %d (%s)", status.Signal(), status.Signal())
	default:
		return fmt.Sprintf("exit status %d", status.ExitStatus())
	}
}

// detach ends the goroutine and leaves the process running.
func (p *process) detach() {
	p.watch.cancel()
	<-p.done
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return p.exited
	default:
		return false
	}
}

// signal sends sig. A process that has ended is not an error.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.watch.signal(sig); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("signal postmaster %d: %w", p.pid, err)
	}
	return nil
}

// immediateGrace is how long an immediate shutdown may take; the postmaster
// itself kills its children after five seconds.
const immediateGrace = 8 * time.Second

// stop shuts the postmaster down: fast (sessions end, a checkpoint is made) until
// ctx is done, then immediate (recovery at the next start). It returns when the
// process has ended; the error says that force was needed.
//
// A server that recovers because one of its processes died is stopped at once: PostgreSQL 15
// to 18 never end a fast shutdown that begins then. It has no sessions, and the
// recovery begins again at the next start.
func (p *process) stop(ctx context.Context) error {
	if p.isReinitializing(ctx) {
		if err := p.kill(); err != nil {
			return err
		}
		return errors.New("stopped at once while it recovered from the death of one of its processes")
	}
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	if err := p.kill(); err != nil {
		return err
	}
	return fmt.Errorf("fast shutdown took too long, stopped at once: %w", ctx.Err())
}

// isReinitializing reports whether a server that had accepted sessions refuses them,
// because one of its processes has died.
func (p *process) isReinitializing(ctx context.Context) bool {
	file, err := readPIDFile(p.dir)
	if err != nil || file.pid != p.pid || !file.accepting() {
		return false // what it says while it starts or stops; it is not changed when a process dies
	}
	config, err := superuserConfig(file.socketDir, file.port, "postgres")
	if err != nil {
		return false
	}
	config.ConnectTimeout = refusalTimeout
	conn, err := openSession(context.WithoutCancel(ctx), p.dir, config)
	if err == nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return false
	}
	return isRefusal(err, sqlstateNotUp)
}

// refusalTimeout is how long a server may take to say that it accepts no sessions.
const refusalTimeout = time.Second

// kill shuts the postmaster down without a checkpoint.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	timer := time.NewTimer(immediateGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}
