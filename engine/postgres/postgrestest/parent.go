package postgrestest

import (
	"fmt"
	"os"
	"strings"
)

// Parent returns the parent of a process, 0 when it is gone. A child that was
// just forked has its postmaster's command line still.
func Parent(pid int) (ppid int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	_, _ = fmt.Sscanf(rest, "%1s %d", new(string), &ppid)
	return ppid
}
