package postgrestest

import (
	"fmt"
	"os"
	"strings"
)

// Parent returns the parent of a process, 0 if it has ended. A child that was
// just forked still has its postmaster's command line.
func Parent(pid int) (ppid int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	_, _ = fmt.Sscanf(rest, "%1s %d", new(string), &ppid)
	return ppid
}
