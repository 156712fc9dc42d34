package sandbox

import (
	"os"
	"syscall"
	"time"
)

const (
	// grace is how long a command may take to end after SIGTERM, and how long
	// terminate tries SIGKILL after that.
	grace = 5 * time.Second
	// familyPoll is how often a family is looked at meanwhile.
	familyPoll = 20 * time.Millisecond
)

// terminate ends a command and the processes that it has started: by SIGTERM,
// and by SIGKILL those that are still there after the grace. The command shares
// the process group of this program, as a terminal's job needs it, and that of a
// script may hold others; so the processes are found by their parents. over
// receives the result of waiting for the command.
func terminate(command *os.Process, over <-chan error) {
	processes := newFamily(command)
	processes.signal(syscall.SIGTERM)
	processes.signal(syscall.SIGCONT) // one that is stopped gets the other first
	if processes.gone(over, nil) {
		return
	}
	processes.gone(over, func() { processes.signal(syscall.SIGKILL) })
}

// gone polls until the processes have ended and the command has been waited for,
// for the grace at most. It calls again, unless that is nil, at every poll.
func (f *family) gone(over <-chan error, again func()) bool {
	tick := time.NewTicker(familyPoll)
	defer tick.Stop()
	for deadline := time.Now().Add(grace); ; {
		if again != nil {
			again()
		}
		select {
		case <-over:
			f.waited = true
		case <-tick.C:
		}
		if f.look(); f.waited && len(f.members) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
