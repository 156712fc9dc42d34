package postgres

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"syscall"
)

// endPgUpgrade ends a pg_upgrade that a killed appliance left running on the new
// directory dir, with the programs that it runs, and returns when they have ended.
// The servers that it has started are not among them.
func endPgUpgrade(ctx context.Context, dir string) error {
	return endAll(ctx, func() []int { return pgUpgradesOf(dir) }, func(pid int) {
		if group, err := syscall.Getpgid(pid); err == nil && group == pid {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended already
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	})
}

// pgUpgradesOf finds the processes by pg_upgrade's command line.
func pgUpgradesOf(dir string) []int {
	return processesWhere(func(pid int) bool {
		args := bytes.Split(procFile(pid, "cmdline"), []byte{0})
		return len(args) > 1 && filepath.Base(string(args[0])) == "pg_upgrade" && slices.ContainsFunc(args[1:], func(arg []byte) bool {
			return string(arg) == newDataDirectory+dir
		})
	})
}
