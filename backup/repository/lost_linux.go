package repository

import "syscall"

// errCorrupt is what a file system answers that finds itself damaged.
const errCorrupt = syscall.EUCLEAN
