package repository

import (
	"errors"
	"fmt"
)

// ErrDamaged means that a file of the repository is not as it was written: bytes changed, are missing, or cannot be
// read. The error names the file. Do not retry.
var ErrDamaged = errors.New("backup repository is damaged")

// ErrNotFound means that the backup does not exist.
var ErrNotFound = errors.New("no such backup in the repository")

// ErrReadOnly means that a sync failed or that the repository was opened for reading, so it accepts no writes.
var ErrReadOnly = errors.New("backup repository is read-only")

// ErrBusy means that a backup is being written.
var ErrBusy = errors.New("a backup is being written to the repository")

func damaged(name, what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, name, what) }
