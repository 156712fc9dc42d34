package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The minimum that a machine should have free.
const (
	leastDisk    = 256 << 20 // below this databases stop soon
	littleDisk   = 2 << 30
	littleInodes = 10_000
	littleMemory = 256 << 20
	openFiles    = 4096 // for the appliance; a database's processes have their own limit
)

// checkDisk checks the file system of the data directory, or of its nearest
// ancestor that exists.
func checkDisk(_ context.Context, opts Options) []Finding {
	const check = "disk"
	dir := nearest(opts.DataDir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return one(Finding{check, Warning, "cannot be measured: " + err.Error(), "look at it with df"})
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	detail := fmt.Sprintf("%s free of %s on the file system of %s", size(free), size(int64(fs.Blocks)*int64(fs.Bsize)), dir)
	const remedy = "free disk space, or move the data directory"
	switch {
	case free < leastDisk:
		return one(Finding{check, Problem, detail, remedy})
	case free < littleDisk, float64(free) < opts.DiskFree*float64(int64(fs.Blocks)*int64(fs.Bsize)):
		return one(Finding{check, Warning, detail, remedy})
	case fs.Files > 0 && fs.Ffree < littleInodes:
		return one(Finding{check, Warning, fmt.Sprintf("%s, but inodes for only %d more files", detail, fs.Ffree), remedy})
	}
	return one(Finding{Check: check, Level: OK, Detail: detail})
}

// checkMemory reads /proc/meminfo, if it exists.
func checkMemory(context.Context, Options) []Finding {
	const check = "memory"
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		var available int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &available); n == 1 {
			detail := size(available<<10) + " available; an idle database takes about 25 MiB"
			if available<<10 < littleMemory {
				return one(Finding{check, Warning, detail, "stop what else runs here, or take a larger machine"})
			}
			return one(Finding{Check: check, Level: OK, Detail: detail})
		}
	}
	return nil
}

// checkOpenFiles checks the limit of programs started from here. Go raises the
// soft limit to the hard limit itself.
func checkOpenFiles(context.Context, Options) []Finding {
	const check = "open files"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil
	}
	detail := fmt.Sprintf("at most %d", limit.Max)
	if limit.Max > 1<<40 {
		detail = "no limit"
	}
	if limit.Max < openFiles {
		return one(Finding{check, Warning, detail, fmt.Sprintf("raise the hard limit to %d or more (ulimit -Hn, LimitNOFILE= of systemd)", openFiles)})
	}
	return one(Finding{Check: check, Level: OK, Detail: detail})
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	default:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
}
