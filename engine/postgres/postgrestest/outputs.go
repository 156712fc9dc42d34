package postgrestest

import (
	"fmt"
	"os"
	"strings"
)

// keepOutputs opens, as root, the files that `go test` has asked the testing
// package to write (the log for its cache, profiles), because only root can enter
// their directories. It changes the arguments to name /proc/self/fd/N, which
// refers to the open file.
func keepOutputs(uid, gid int) error {
	for n, arg := range os.Args {
		name, path, found := strings.Cut(arg, "=")
		if n == 0 || !found || path == "" {
			continue
		}
		open := os.Create
		switch strings.TrimLeft(name, "-") {
		case "test.testlogfile", "test.coverprofile", "test.cpuprofile", "test.memprofile",
			"test.blockprofile", "test.mutexprofile", "test.trace":
		case "test.gocoverdir":
			open = os.Open
		default:
			continue
		}
		f, err := open(path)
		if err != nil {
			return err
		}
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
		// f deliberately stays open until the process ends.
		os.Args[n] = fmt.Sprintf("%s=/proc/self/fd/%d", name, dupForever(f))
	}
	return nil
}
