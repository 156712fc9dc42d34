package stream

import (
	"errors"

	"holdfast/internal/objectstore"
)

// maxReads is how often something is read that arrives as it was not written. What
// was changed on the way, by a proxy or in a memory, arrives whole the next time; what
// is damaged in the store does not.
const maxReads = 3

// reread repeats read while what arrives is damaged.
func reread[T any](read func() (T, error)) (got T, err error) {
	for range maxReads {
		if got, err = read(); !arrivesDamaged(err) {
			break
		}
	}
	return got, err
}

// arrivesDamaged reports whether an error is about the bytes that the store sent.
func arrivesDamaged(err error) bool { return Damaged(err) && !errors.Is(err, objectstore.ErrNotFound) }
