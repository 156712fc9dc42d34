package repository

import (
	"errors"
	"fmt"
)

// ErrDamaged is a file of the repository that is not what was written: bytes
// changed, are missing, or cannot be read. The text names it. Do not retry.
var ErrDamaged = errors.New("backup repository is damaged")

// ErrNotFound is a backup that does not exist.
var ErrNotFound = errors.New("no such backup in the repository")

// ErrReadOnly means that a sync failed or that the repository was opened for
// reading: nothing more is written.
var ErrReadOnly = errors.New("backup repository is read-only")

// ErrBusy means that a backup is being written.
var ErrBusy = errors.New("a backup is being written to the repository")

func damaged(name, what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, name, what) }
