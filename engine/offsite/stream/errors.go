package stream

import (
	"errors"
	"fmt"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

var (
	// ErrFenced means that another machine has claimed a later epoch, or writes below
	// the epoch of this one. A Writer that returns it never writes again.
	ErrFenced = errors.New("another machine has taken over")
	// ErrTaken means that the newest epoch belongs to another machine, which may still
	// be alive.
	ErrTaken = errors.New("the newest epoch belongs to another machine")
	// ErrCorrupt means that an object is missing that must be there, or is not what
	// was written.
	ErrCorrupt = errors.New("off-site data is damaged")
	// ErrVersion means that a later version of holdfast wrote an object.
	ErrVersion = errors.New("format is not supported by this version of holdfast")
	// ErrNoMarker means that a prefix has the data of a repository and lacks the object that says so.
	ErrNoMarker = errors.New("the repository's marker is missing")
	// ErrDeleted means that a prefix has nothing but earlier versions of objects that were deleted.
	ErrDeleted = errors.New("the repository was deleted, and the store has its versions")
	// ErrAbsent means that a store answers as if it had no repository: nothing that it does not find is lost for good. A disk that is
	// not mounted has an empty directory in its place.
	ErrAbsent = errors.New("the store does not give the repository's marker")
	// ErrNoPoint means that no usable checkpoint is at or before the time.
	ErrNoPoint = errors.New("there is no usable recovery point")
	// ErrClosed means that the Writer was closed.
	ErrClosed = errors.New("the writer is closed")
)

// corrupt returns an error that wraps ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCorrupt, fmt.Errorf(format, args...))
}

// Damaged reports whether an error is about the content of an object, or its
// absence, and not about reaching the store.
func Damaged(err error) bool {
	for _, kind := range []error{
		ErrCorrupt, ErrVersion, objectstore.ErrCorrupt, objectstore.ErrNotFound,
		sealed.ErrCorrupt, sealed.ErrMismatch, sealed.ErrNoKey, sealed.ErrVersion,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// isJunk reports whether an error of getClaim or decodeClaim means that an object below "epoch/" or "bid/" is no claim. One
// that this process cannot open may be one: of a machine that has a later master key, or
// a later version of holdfast. So may one that is listed and not found: claims are never removed, so the store's answer is wrong.
func isJunk(err error) bool {
	for _, kind := range []error{ErrVersion, sealed.ErrNoKey, objectstore.ErrNotFound} {
		if errors.Is(err, kind) {
			return false
		}
	}
	return Damaged(err)
}

// contentError is an error of a Content, which another attempt does not change.
type contentError struct{ err error }

func (e *contentError) Error() string { return "read the content: " + e.err.Error() }

func (e *contentError) Unwrap() error { return e.err }

// isOfContent reports whether an error comes from what was to be stored.
func isOfContent(err error) bool {
	e := (*contentError)(nil)
	return errors.As(err, &e)
}
