package sandbox

import (
	"os"
	"syscall"
	"time"
)

const (
	// grace is how long a command may take to end after SIGTERM, and how long
	// terminate repeats SIGKILL after that.
	grace = 5 * time.Second
	// familyPoll is how often terminate polls the family.
	familyPoll = 20 * time.Millisecond
)

// terminate ends a command and the processes it has started: by SIGTERM, then by
// SIGKILL for those that remain after the grace. The command shares this
// program's process group, as a terminal's job must, and the group of a script
// may hold other processes; so terminate finds the processes by their parents.
// over receives the result of waiting for the command.
func terminate(command *os.Process, over <-chan error) {
	processes := newFamily(command)
	processes.signal(syscall.SIGTERM)
	processes.signal(syscall.SIGCONT) // wakes stopped processes, which then get SIGTERM
	if processes.gone(over, nil) {
		return
	}
	processes.gone(over, func() { processes.signal(syscall.SIGKILL) })
}

// gone polls until the processes have ended and the command has been waited for,
// at most for the grace. It calls again at every poll, unless it is nil.
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
