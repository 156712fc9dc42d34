package offsite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"filippo.io/age"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Capabilities are what a probe found that a store can do.
type Capabilities struct {
	// Conditional means that the store refuses to create an object twice.
	Conditional bool `json:"conditional"`
	// Checksums means that the store checks what it receives.
	Checksums bool `json:"checksums"`
	// Lists means that a new object is listed at once.
	Lists     bool `json:"lists"`
	Versioned bool `json:"versioned"`
	// Lock means that the bucket has Object Lock.
	Lock bool `json:"lock"`
	// MayDelete means that these credentials may delete.
	MayDelete        bool    `json:"may_delete"`
	ClockSkewSeconds float64 `json:"clock_skew_seconds"`
}

// Probe finds out what the store at a URL can do. It writes a few bytes, and refuses
// a store that cannot be used.
func Probe(ctx context.Context, url string) (Capabilities, error) {
	store, err := objectstore.Open(ctx, url, objectstore.Options{})
	if err != nil {
		return Capabilities{}, err
	}
	found, err := store.Probe(ctx)
	if err = errors.Join(err, store.Close()); err != nil {
		return Capabilities{}, fmt.Errorf("try the store: %w", err)
	}
	c := Capabilities{
		Conditional: found.Conditional, Checksums: found.Checksums, Lists: found.ListsWrites,
		Versioned: found.Versioned, Lock: found.Lock, MayDelete: found.MayDelete, ClockSkewSeconds: found.ClockSkew.Seconds(),
	}
	if !c.Lists {
		return c, model.Errorf(model.CodeValidation, "the store %s does not list an object that was just written: it cannot hold the copy, choose another", url)
	}
	return c, nil
}

// Initialized is a new place for copies.
type Initialized struct {
	Repository string    `json:"repository"`
	CreatedAt  time.Time `json:"created_at"`
	MasterKey  uint32    `json:"master_key"`
}

// Initialize prepares an empty prefix for copies. The recipients, or the first
// passphrase of the location, open the master key.
func Initialize(ctx context.Context, at Location, recipients []age.Recipient, now time.Time) (made Initialized, err error) {
	store, err := objectstore.Open(ctx, at.URL, objectstore.Options{})
	if err != nil {
		return made, err
	}
	if store, _, err = probed(ctx, store, at.URL, objectstore.Options{}); err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if recipients, err = at.Keys.recipients(recipients); err != nil {
		return made, err
	}
	marker, key, err := stream.Init(ctx, store, now, recipients...)
	if errors.Is(err, objectstore.ErrExists) {
		return made, model.Errorf(model.CodeConflict, "%s has the copy of an appliance already: choose an empty prefix", at.URL)
	}
	return Initialized{marker.Repository, marker.Created, key.Number()}, explainMarker(err, at.URL)
}

// IsInitialized reports whether the store at a URL has a copy, or is prepared for one.
func IsInitialized(ctx context.Context, url string) (is bool, err error) {
	store, err := objectstore.Open(ctx, url, objectstore.Options{})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = stream.ReadMarker(ctx, store)
	if errors.Is(err, objectstore.ErrNotFound) {
		return false, nil
	}
	return err == nil, explainMarker(err, url)
}

// recipients returns those that were given, else that of the first passphrase.
func (k Keys) recipients(given []age.Recipient) ([]age.Recipient, error) {
	if len(given) > 0 {
		return given, nil
	}
	if len(k.passphrases) == 0 {
		return nil, errors.New("wrap the master key: there is neither a passphrase nor a recipient")
	}
	r, err := sealed.PassphraseRecipient(k.passphrases[0].Reveal())
	return []age.Recipient{r}, err
}
