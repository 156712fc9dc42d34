package repository

import (
	"errors"
	"fmt"
)

// ErrDamaged means that a file of the repository is not what was written: a
// byte changed, or bytes are missing or cannot be read. The text says which. Do not retry.
var ErrDamaged = errors.New("backup repository is damaged")

// ErrNotFound means that there is no backup of that id.
var ErrNotFound = errors.New("no such backup in the repository")

// ErrReadOnly means that the disk failed to sync, or that the repository was
// opened for reading: nothing more is written.
var ErrReadOnly = errors.New("backup repository is read-only")

// ErrBusy means that a backup is being written.
var ErrBusy = errors.New("a backup is being written to the repository")

func damaged(name, what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, name, what) }
