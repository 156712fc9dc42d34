package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

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

const (
	// firstPause is before an object is read again that the store has and does not find; each further pause is twice as long.
	firstPause = time.Second
	// maxPauses is how many there are. They take a minute, for which a client of NFS may remember that a file did not exist.
	maxPauses = 6
)

// present reads an object that must be there.
func present[T any](ctx context.Context, r *Repository, key string, read func() (T, error)) (got T, err error) {
	for paused := 0; ; paused++ {
		if got, err = reread(read); !errors.Is(err, objectstore.ErrNotFound) {
			return got, err
		}
		if err := r.confirmMissing(ctx, key, paused, err); err != nil {
			return got, err
		}
	}
}

// confirmMissing finds out whether an object is missing that the store does not find. A cache on the way, of a proxy or of a
// network file system, may remember that it did not exist. confirmMissing returns notFound if the store does not describe or
// list the object either, an error of the store after the last pause, and nil after another pause: then the object is to be
// read again.
func (r *Repository) confirmMissing(ctx context.Context, key string, paused int, notFound error) error {
	there, err := r.isThere(ctx, key)
	switch {
	case err != nil:
		return fmt.Errorf("look for an object that is not found: %w", err)
	case !there:
		return notFound
	case paused >= maxPauses:
		return &objectstore.Error{
			Act: "read", Key: key, Store: r.store.String(), Kind: objectstore.ErrUnavailable,
			Detail: "the object exists, but the store does not find it", Remedy: "check what caches the store's answers",
		}
	}
	return pause(ctx, paused)
}

// isThere reports whether the store describes or lists an object.
func (r *Repository) isThere(ctx context.Context, key string) (bool, error) {
	_, err := r.store.Stat(ctx, key)
	if !errors.Is(err, objectstore.ErrNotFound) {
		return err == nil, err
	}
	for info, err := range r.store.List(ctx, key, "") {
		return err == nil && info.Key == key, err
	}
	return false, nil
}

// pause waits before something is read again.
func pause(ctx context.Context, paused int) error {
	timer := time.NewTimer(firstPause << paused)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
