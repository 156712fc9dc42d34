//go:build !linux

package postgres

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// isPostmaster reports whether process pid is the postmaster of the data
// directory dir, judging by its command line, `postgres -D dir`.
func isPostmaster(pid int, dir string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasSuffix(strings.TrimSpace(string(out)), "postgres -D "+dir)
}

// processesOf is not implemented here: PostgreSQL itself refuses to start while
// processes of a dead postmaster live, and launch retries. authentication_timeout
// ends incomplete logins.
func processesOf(string) []int { return nil }

func servesDir(int, string) bool { return false }

func isLogger(int) bool { return false }

func isIncompleteLogin(int) bool { return false }

func clientOf(int) string { return "" }

func clientPortOf(int) int { return 0 }

func isBlocked(int, string, string) bool { return false }

func isRecovering(int) bool { return false }

func isCheckpointer(int) bool { return false }

func childrenOf(int) []int { return nil }

func runState(int) (byte, time.Duration) { return 0, 0 }

func processAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || err == syscall.EPERM
}
