package importer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// limitMemory limits the data memory (RLIMIT_DATA) of a process that has just started; 0 for no limit.
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
