package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// family is a command and its descendants. One that has lost its parent stays in
// it, if it was seen before.
type family struct {
	command int
	members map[int]string // process id to start time: ids are used again
	waited  bool           // the command's id may be another's now
}

func newFamily(command *os.Process) *family {
	f := &family{command: command.Pid, members: map[int]string{}}
	f.look()
	return f
}

// look takes those out that have ended, and in those that have come.
func (f *family) look() {
	running := processes()
	for pid, started := range f.members {
		if running[pid].started != started {
			delete(f.members, pid)
		}
	}
	if p, ok := running[f.command]; ok && !f.waited {
		f.members[f.command] = p.started
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range running {
			_, known := f.members[pid]
			if _, child := f.members[p.parent]; child && !known {
				f.members[pid], grown = p.started, true
			}
		}
	}
}

// signal sends a signal to all; one that has just ended, or that is another
// user's, does not get it.
func (f *family) signal(s syscall.Signal) {
	f.look()
	for pid := range f.members {
		_ = syscall.Kill(pid, s)
	}
}

// process is what /proc/PID/stat says of one.
type process struct {
	parent  int
	started string // in clock ticks since the machine's start
}

// processes lists those that have not ended; a zombie has.
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

// parseStat reads the fields that follow the program's name, which stands in
// parentheses and may hold any character.
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
