package cli

import "golang.org/x/sys/unix"

// allowInspection gives back to the user the files of this process below
// /proc, which Linux takes away from a process that changed its user.
func allowInspection() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }
