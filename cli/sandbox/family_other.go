//go:build !linux

package sandbox

import (
	"os"
	"syscall"
)

// family is the command alone: its descendants are unknown on this system.
type family struct {
	process *os.Process
	members []int
	waited  bool
}

func newFamily(command *os.Process) *family {
	return &family{process: command, members: []int{command.Pid}}
}

func (f *family) look() {
	if f.waited {
		f.members = nil
	}
}

func (f *family) signal(s syscall.Signal) { _ = f.process.Signal(s) } // it may just have ended
