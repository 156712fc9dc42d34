package postgres

import (
	"bytes"
	"context"
	"path/filepath"
	"syscall"
	"time"
)

// endInitdb ends an initdb that a killed appliance left running on dir, and
// returns when it has ended. initdb's server ends when the pipe between them
// breaks.
func endInitdb(ctx context.Context, dir string) error {
	return endAll(ctx, func() []int { return initdbsOf(dir) }, func(pid int) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
	})
}

// endAll kills the processes that find returns, and returns when it finds none.
func endAll(ctx context.Context, find func() []int, kill func(pid int)) error {
	for {
		running := find()
		if len(running) == 0 {
			return nil
		}
		for _, pid := range running {
			kill(pid)
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// initdbsOf finds the processes by initdb's command line: the directory's random
// name makes it unambiguous.
func initdbsOf(dir string) []int {
	return processesWhere(func(pid int) bool {
		args := bytes.Split(procFile(pid, "cmdline"), []byte{0})
		return len(args) > 1 && filepath.Base(string(args[0])) == "initdb" && string(args[1]) == "--pgdata="+dir
	})
}
