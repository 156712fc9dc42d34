package core

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is what the machine has, in bytes.
type Host struct {
	DiskTotal, DiskFree          int64
	MemoryTotal, MemoryAvailable *int64 // nil where the system does not say
}

// MeasureHost asks the file system of dir, and /proc/meminfo where there is
// one. DiskFree is what an ordinary user can take.
func MeasureHost(dir string) (Host, error) {
	total, free, err := MeasureDisk(dir)
	if err != nil {
		return Host{}, err
	}
	host := Host{DiskTotal: total, DiskFree: free}
	memory, err := os.Open("/proc/meminfo")
	if err != nil {
		return host, nil
	}
	defer memory.Close()
	lines := bufio.NewScanner(memory)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "MemTotal":
			host.MemoryTotal = kibibytes(rest)
		case "MemAvailable":
			host.MemoryAvailable = kibibytes(rest)
		}
	}
	return host, nil
}

// MeasureDisk returns what the file system of dir has, in bytes, and what of it
// an ordinary user can take.
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
