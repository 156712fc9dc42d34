package importer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limitMemory bounds the memory that a process which was just started may take
// for data; 0 for any.
func limitMemory(pid int, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil); err != nil {
		return fmt.Errorf("limit memory of pg_dump: %w", err)
	}
	return nil
}
