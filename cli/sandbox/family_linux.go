package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// family is a command and its descendants. A process that loses its parent stays
// a member if it was seen before.
type family struct {
	command int
	members map[int]string // process id to start time: ids are reused
	order   []int          // the members, each after its parent
	waited  bool           // the command's id may have been reused
}

func newFamily(command *os.Process) *family {
	f := &family{command: command.Pid, members: map[int]string{}}
	f.look()
	return f
}

// look removes the members that have ended and adds new ones.
func (f *family) look() {
	running := processes()
	for pid, started := range f.members {
		if running[pid].started != started {
			delete(f.members, pid)
		}
	}
	f.order = slices.DeleteFunc(f.order, func(pid int) bool { return f.members[pid] == "" })
	if p, ok := running[f.command]; ok && !f.waited {
		f.add(f.command, p)
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range running {
			_, known := f.members[pid]
			if _, child := f.members[p.parent]; child && !known {
				f.add(pid, p)
				grown = true
			}
		}
	}
}

func (f *family) add(pid int, p process) {
	if f.members[pid] == "" {
		f.order = append(f.order, pid)
	}
	f.members[pid] = p.started
}

// signal sends s to all members, to parents first: a shell whose child ended before
// it would go on with its next command. It ignores errors: a member may have just
// ended or belong to another user.
func (f *family) signal(s syscall.Signal) {
	f.look()
	for _, pid := range f.order {
		_ = syscall.Kill(pid, s)
	}
}

// process holds fields of /proc/PID/stat.
type process struct {
	parent  int
	started string // in clock ticks since boot
}

// processes lists the running processes; zombies do not count.
func processes() map[int]process {
	all := map[int]process{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if p, alive := parseStat(text); err == nil && alive {
			all[pid] = p
		}
	}
	return all
}

// parseStat reads the fields after the program's name, which is in parentheses
// and may hold any character.
func parseStat(text []byte) (p process, alive bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const state, parent, started = 0, 1, 19
	if len(fields) <= started {
		return p, false
	}
	_, err := fmt.Sscan(string(fields[parent]), &p.parent)
	p.started = string(fields[started])
	return p, err == nil && string(fields[state]) != "Z" && string(fields[state]) != "X"
}
