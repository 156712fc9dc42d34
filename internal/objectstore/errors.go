package objectstore

import (
	"context"
	"errors"
	"strings"
	"time"
)

// What can be wrong. An *Error wraps one of these.
var (
	// ErrNotFound means that there is no object below the key.
	ErrNotFound = errors.New("there is no such object")
	// ErrExists means that the key has an object that another call made.
	ErrExists = errors.New("the object exists already")
	// ErrDenied means that the store refuses the credentials, or the act to them.
	ErrDenied = errors.New("the store denies it")
	// ErrLocked means that the retention of an object has not ended.
	ErrLocked = errors.New("the object is locked")
	// ErrNoStore means that the bucket or directory is missing or was exchanged.
	ErrNoStore = errors.New("the store is not there")
	// ErrClock means that the clocks of this machine and the store differ too much.
	ErrClock = errors.New("the clock of this machine differs from the store's")
	// ErrUnavailable means that the store did not do it in time and might later.
	ErrUnavailable = errors.New("the store is not available")
	// ErrCorrupt means that the bytes are not those that were stored.
	ErrCorrupt = errors.New("the object is corrupt")
	// ErrFull means that the store has no space left, or a quota is used up.
	ErrFull = errors.New("the store is full")
	// ErrUnsupported means that the store cannot do it, or that the call is wrong.
	ErrUnsupported = errors.New("the store does not support it")
)

// Error is an operation that failed.
type Error struct {
	Act        string        // what was tried: create, read, stat, list, delete, retain, probe, open, prune
	Key        string        // relative to the store; empty where there is none
	Store      string        // the URL
	Kind       error         // one of the Err… values, or an error of a context or Body
	Detail     string        // what the store said
	Remedy     string        // what a person can do
	RetryAfter time.Duration // for ErrUnavailable: how long the store wants to be left alone; 0 if it did not say

	retry bool // whether it is worth another attempt
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Act)
	if e.Key != "" {
		b.WriteString(" " + e.Key)
	}
	b.WriteString(" in " + e.Store + ": " + e.Kind.Error())
	if e.Detail != "" {
		b.WriteString(" (" + e.Detail + ")")
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Unwrap returns Kind.
func (e *Error) Unwrap() error { return e.Kind }

// without returns what text, which begins with an error, says beyond it.
func without(kind error, text string) string {
	return strings.TrimPrefix(strings.TrimPrefix(text, kind.Error()), ": ")
}

// contextError returns the error of a context that err wraps.
func contextError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}
