package offsite

import (
	"context"
	"errors"
	"fmt"

	"filippo.io/age"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Rotated is a new master key.
type Rotated struct {
	MasterKey uint32 `json:"master_key"`
}

// CheckKeys returns an error unless the keys open the copy.
func CheckKeys(ctx context.Context, at Location) error {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		return err
	}
	return c.close()
}

// Rotate adds a master key, which the next start of the service begins to use. The
// recipients, or the first passphrase of next, open it. What earlier ones encrypted
// needs those, and what opens them. It may be repeated after an error.
func Rotate(ctx context.Context, at Location, next Keys, recipients []age.Recipient) (made Rotated, err error) {
	c, _, err := connectProbed(ctx, at, objectstore.Options{})
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if next.IsZero() {
		next = at.Keys
	}
	if recipients, err = next.recipients(recipients); err != nil {
		return made, err
	}
	key, err := c.repository.Rotate(ctx, recipients...)
	if later, ok := errors.AsType[*stream.LaterKeyError](err); ok {
		return c.rotatedBefore(ctx, at, next, later.Number)
	}
	if err != nil {
		return made, fmt.Errorf("store the new master key: %w", err)
	}
	return Rotated{key.Number()}, nil
}

// rotatedBefore is for a copy that has a later master key than those that were given open. It is that of this rotation, whose
// answer was lost, if the new passphrase opens it.
func (c *connection) rotatedBefore(ctx context.Context, at Location, next Keys, later uint32) (Rotated, error) {
	both := at.Keys.And(next)
	both.unwrapped = &sealed.Unwrapped{} // at.Keys alone do not open what next opens
	ring, err := loadKeys(ctx, c.store, both)
	if err == nil && ring.Newest().Number() >= later {
		return Rotated{ring.Newest().Number()}, nil
	}
	if err != nil && !stream.Damaged(err) && !errors.Is(err, sealed.ErrLocked) {
		return Rotated{}, fmt.Errorf("load the master keys: %w", err)
	}
	name := sealed.KeyName(later)
	return Rotated{}, model.Errorf(model.CodeConflict, "%s has a later master key, %s, which nothing that was given opens: if an earlier rotation stored it, the rotation is done, "+
		"and what opens that key belongs into the first line of the passphrase file, or into --identity; if it is a stranger's, remove it from the store, and rotate again", at.URL, name)
}
