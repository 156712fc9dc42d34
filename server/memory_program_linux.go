package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram takes the pages of the program file out of this process. The kernel maps 64 KiB around each page that is
// used, and keeps them mapped as long as memory is not short, so nearly the whole file is resident after a start: 36 MB,
// and that of a bundle of PostgreSQL as well. What is in use comes back from the page cache: 10 to 12 MB for an
// appliance that rests.
func dropProgram() error {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	mappings, err := unchangedMappings(smaps, program)
	for _, m := range mappings {
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); failed != 0 {
			err = errors.Join(err, fmt.Errorf("madvise the program file: %w", failed))
		}
	}
	return err
}

// mapping is a range of addresses that a file is mapped to.
type mapping struct {
	start, end uintptr
	resident   int // KiB
}

// unchangedMappings returns where smaps, in the format of proc_pid_smaps(5), has the file mapped read-only and without
// a page of the process's own. Such a page, of a relocation or a debugger, would be lost with its mapping.
func unchangedMappings(smaps io.Reader, file string) (found []mapping, err error) {
	var current *mapping
	for lines := bufio.NewScanner(smaps); ; {
		if !lines.Scan() {
			return found, lines.Err()
		}
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 1 && strings.HasSuffix(fields[0], ":"):
			kib, err := strconv.Atoi(fields[1])
			switch {
			case current == nil || err != nil:
			case fields[0] == "Rss:":
				current.resident = kib
			case fields[0] == "Anonymous:" && kib == 0:
				found = append(found, *current)
			}
		case len(fields) > 4:
			current = nil
			var m mapping
			_, err := fmt.Sscanf(fields[0], "%x-%x", &m.start, &m.end)
			_, path, _ := strings.Cut(lines.Text(), "/")
			if err == nil && "/"+path == file && !strings.Contains(fields[1], "w") {
				current = &m
			}
		}
	}
}
