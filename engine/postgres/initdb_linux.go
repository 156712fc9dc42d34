package postgres

import (
	"bytes"
	"context"
	"path/filepath"
	"syscall"
	"time"
)

// endInitdb ends an initdb that still works on dir, which an appliance that
// was killed has left behind, and returns when it is gone. Its own server ends
// with the pipe between them.
func endInitdb(ctx context.Context, dir string) error {
	for {
		running := initdbsOf(dir)
		if len(running) == 0 {
			return nil
		}
		for _, pid := range running {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is fine
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// initdbsOf finds the processes by the command line initdb gave them: the
// directory's random name makes it unmistakable.
func initdbsOf(dir string) []int {
	return processesWhere(func(pid int) bool {
		args := bytes.Split(procFile(pid, "cmdline"), []byte{0})
		return len(args) > 1 && filepath.Base(string(args[0])) == "initdb" && string(args[1]) == "--pgdata="+dir
	})
}
