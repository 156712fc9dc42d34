package core

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host describes the machine's disk and memory, in bytes.
type Host struct {
	DiskTotal, DiskFree          int64
	MemoryTotal, MemoryAvailable *int64 // nil if unknown
}

// MeasureHost measures the file system of dir, and memory if there is a
// /proc/meminfo. DiskFree is the space available to an ordinary user.
func MeasureHost(dir string) (Host, error) {
	total, free, err := MeasureDisk(dir)
	if err != nil {
		return Host{}, err
	}
	host := Host{DiskTotal: total, DiskFree: free}
	host.MemoryTotal, host.MemoryAvailable = measureMemory()
	return host, nil
}

// measureMemory returns nil for what /proc/meminfo does not say.
func measureMemory() (total, available *int64) {
	memory, err := os.Open("/proc/meminfo")
	if err != nil {
		return nil, nil
	}
	defer memory.Close()
	lines := bufio.NewScanner(memory)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "MemTotal":
			total = kibibytes(rest)
		case "MemAvailable":
			available = kibibytes(rest)
		}
	}
	return total, available
}

// DefaultWarm returns how many warm servers this machine has room for: one, and one more for each 8 GiB of memory, at
// most four.
func DefaultWarm() int {
	const most = 4
	total, _ := measureMemory()
	if total == nil {
		return 1
	}
	return int(min(1+*total>>33, most))
}

// MeasureDisk returns the size of the file system of dir, and the space available to
// an ordinary user, in bytes.
func MeasureDisk(dir string) (total, free int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, fmt.Errorf("measure disk: %w", err)
	}
	block := int64(fs.Bsize)
	return int64(fs.Blocks) * block, int64(fs.Bavail) * block, nil
}

func kibibytes(text string) *int64 {
	number, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
	if err != nil {
		return nil
	}
	number *= 1024
	return &number
}
