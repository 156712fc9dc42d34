package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes that are not the command's own. Those for a command that could not
// be run follow env(1), timeout(1) and shells.
const (
	ExitLost          = 122 // the database ended before the command did
	ExitNotRun        = 125 // a step before the command failed
	ExitNotExecutable = 126
	ExitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

// Ended describes a command that did not succeed.
type Ended struct {
	Code int
	// Err is why the command did not start or was ended; nil if it ended by
	// itself and so has reported its own errors.
	Err error
}

// Error implements error.
func (e *Ended) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("the command ended with exit code %d", e.Code)
}

// Unwrap returns the cause.
func (e *Ended) Unwrap() error { return e.Err }

// Find checks that the command exists, before a sandbox is created.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &Ended{ExitNotFound, fmt.Errorf("there is no command %s", name)}
	case err != nil:
		return "", &Ended{ExitNotExecutable, fmt.Errorf("%s cannot be run: %w", name, err)}
	}
	return path, nil
}

// Run runs a command with this process's streams and forwards this process's
// signals to it. It returns an *Ended unless the command succeeds. If the sandbox
// is lost meanwhile, Run ends the command and all processes it has started.
func (l *Lease) Run(path string, args, environment []string) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	cmd := exec.Command(path)
	cmd.Args, cmd.Env = args, environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return &Ended{ExitNotExecutable, fmt.Errorf("%s cannot be run: %w", args[0], err)}
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			forward(cmd.Process, s)
		case <-l.lost:
			terminate(cmd.Process, over)
			return &Ended{ExitLost, fmt.Errorf("%w; %s was ended", l.why, args[0])}
		case err := <-over:
			if why := l.Why(); why != nil {
				return &Ended{ExitLost, fmt.Errorf("%w, before %s had ended", why, args[0])}
			}
			return ended(err)
		}
	}
}

// forwarded returns the signals that the command gets too, without those that this process was started to ignore, as
// nohup(1) does with SIGHUP: the command ignores them as well.
func forwarded() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	return slices.DeleteFunc(all, signal.Ignored)
}

// forward forwards a signal, unless a terminal has sent it to the command as
// well.
func forward(command *os.Process, s os.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
		return
	}
	_ = command.Signal(s) // it may have just ended
}

// inForeground reports whether this process and its command are a terminal's
// foreground process group.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func ended(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &Ended{Code: exitSignal + int(status.Signal())}
	}
	return &Ended{Code: exit.ExitCode()}
}
