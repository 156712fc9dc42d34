package postgres

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch refers to one process by a pidfd (pidfd_open(2)), which never comes to
// mean another process. It waits for the process's exit and signals it. The
// runtime's poller holds the descriptor, so waiting costs no thread.
type watch struct {
	pid  int
	file *os.File
}

// newWatch opens the process pid; the error is syscall.ESRCH if there is none.
func newWatch(pid int) (*watch, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// The poller accepts only non-blocking descriptors. (PIDFD_NONBLOCK needs Linux
	// 5.10; this works from 5.3 on, like pidfd_open itself.)
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &watch{pid, os.NewFile(uintptr(fd), "pidfd")}, nil
}

// wait returns true if the process has exited, false after cancel.
func (w *watch) wait() bool {
	conn, err := w.file.SyscallConn()
	if err != nil {
		return false
	}
	return conn.Read(func(fd uintptr) bool { return readable(int(fd)) }) == nil
}

// readable reports whether the pidfd's process has exited.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// cancel makes wait return.
func (w *watch) cancel() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

// signal sends sig to the process: ESRCH once it has ended, os.ErrClosed once the
// watch is closed.
func (w *watch) signal(sig syscall.Signal) error {
	conn, err := w.file.SyscallConn()
	if err != nil {
		return os.ErrClosed
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return os.ErrClosed // the only cause; the poller returns its own error for it
	}
	return sent
}

func (w *watch) close() { _ = w.file.Close() }
