package offsite

import (
	"context"
	"errors"
	"fmt"

	"filippo.io/age"

	"holdfast/internal/objectstore"
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
// needs those, and what opens them.
func Rotate(ctx context.Context, at Location, next Keys, recipients []age.Recipient) (made Rotated, err error) {
	c, err := connect(ctx, at, objectstore.Options{})
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
	if err != nil {
		return made, fmt.Errorf("store the new master key: %w", err)
	}
	return Rotated{key.Number()}, nil
}
