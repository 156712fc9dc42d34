package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// The exit codes of what could not be run, as env(1), timeout(1) and shells
// have them. Any other code is the command's.
const (
	ExitNotRun        = 125 // what came before the command
	ExitNotExecutable = 126
	ExitNotFound      = 127
	exitSignal        = 128 // and the signal's number
)

// Ended is how a command ended that did not succeed.
type Ended struct {
	Code int
	// Err says why the command did not begin; nil when it did, and has said
	// itself what there was to say.
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

// Find sees that there is such a command, before anything is made for it.
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

// Run runs a command with this process's streams, passes the signals on that
// this process gets, and returns an *Ended unless it succeeds.
func Run(path string, args, environment []string) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	cmd := exec.Command(path)
	cmd.Args, cmd.Env = args, environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return &Ended{ExitNotExecutable, fmt.Errorf("%s cannot be run: %w", args[0], err)}
	}
	over := make(chan struct{})
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		forward(cmd.Process, signals, over)
	}()
	err := cmd.Wait()
	close(over)
	<-passed
	return ended(err)
}

func forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// forward passes signals on until the command is over. What a terminal sends, it
// sends to the command as well.
func forward(command *os.Process, signals <-chan os.Signal, over <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
				continue
			}
			_ = command.Signal(s) // it may just have ended
		case <-over:
			return
		}
	}
}

// inForeground reports whether a terminal has this process and its command in
// its foreground.
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
