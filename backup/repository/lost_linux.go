package repository

import "syscall"

// errCorrupt is the error of a file system that detects its own corruption.
const errCorrupt = syscall.EUCLEAN
