package sealed

import "errors"

// The reasons why an object or a key cannot be opened. Errors of this package wrap
// one of them, or an error of the caller's reader or writer.
var (
	// ErrCorrupt means that the bytes are not those that were sealed: changed,
	// truncated, extended, or in another order.
	ErrCorrupt = errors.New("sealed object is corrupt")
	// ErrMismatch means that the header belongs to another name or another master
	// key of the same number, or that it was changed.
	ErrMismatch = errors.New("sealed object does not belong to this name and key")
	// ErrNoKey means that the ring lacks the master key that sealed the object.
	ErrNoKey = errors.New("master key is missing")
	// ErrVersion means that a later version of holdfast sealed the object or wrapped
	// the key.
	ErrVersion = errors.New("format is not supported by this version of holdfast")
	// ErrLocked means that neither the identities nor the passphrase open a wrapped
	// master key.
	ErrLocked = errors.New("no identity or passphrase opens the master key")
)
