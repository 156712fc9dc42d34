package postgres

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// recoverySync is how PostgreSQL, before it recovers from a crash, makes sure
// that what it finds in the data directory is on the disk: one syncfs(2)
// instead of an fsync for each of a thousand files, which took 0.5 to 1.3 s of
// a restart here on a busy disk. Linux reports write errors to syncfs since 5.8 only;
// before, it is PostgreSQL's default.
func recoverySync() string {
	var name unix.Utsname
	var major, minor int
	if err := unix.Uname(&name); err != nil {
		return "fsync"
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); n < 2 {
		return "fsync"
	}
	if major > 5 || major == 5 && minor >= 8 {
		return "syncfs"
	}
	return "fsync"
}
