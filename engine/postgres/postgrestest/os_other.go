//go:build !linux

package postgrestest

import (
	"os"
	"os/exec"
	"strings"
)

func stayDumpable() error { return nil }

func dupForever(f *os.File) int { return int(f.Fd()) }

// leftovers kills the postmasters started on a directory below dir, and lists
// them.
func leftovers(dir string) []string {
	out, _ := exec.Command("ps", "-axww", "-o", "pid=,args=").Output()
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "postgres -D "+dir+"/") {
			found = append(found, strings.TrimSpace(line))
			_ = exec.Command("kill", "-9", strings.Fields(line)[0]).Run()
		}
	}
	return found
}
