//go:build !linux

package postgres

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// watch polls a process by its number, on systems without pidfds: between two
// polls the number could come to mean another process.
type watch struct {
	pid     int
	once    sync.Once
	stopped chan struct{}
}

// watchEvery is the interval between two polls.
const watchEvery = 50 * time.Millisecond

func newWatch(pid int) (*watch, error) {
	if err := syscall.Kill(pid, 0); err != nil && err != syscall.EPERM {
		return nil, os.NewSyscallError("kill", err)
	}
	return &watch{pid: pid, stopped: make(chan struct{})}, nil
}

func (w *watch) wait() bool {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stopped:
			return false
		case <-tick.C:
			if !processAlive(w.pid) {
				return true
			}
		}
	}
}

func (w *watch) cancel() { w.once.Do(func() { close(w.stopped) }) }

func (w *watch) signal(sig syscall.Signal) error { return syscall.Kill(w.pid, sig) }

func (w *watch) close() {}
