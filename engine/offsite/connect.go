package offsite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"filippo.io/age"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Location is where the copy is, and what opens it.
type Location struct {
	URL  string // s3://bucket/prefix or file:///path
	Keys Keys
}

// Keys open the master keys of a copy. A rotation may leave master keys that only
// earlier passphrases open, so there can be several.
type Keys struct {
	passphrases []model.Secret
	identities  []age.Identity
	unwrapped   *sealed.Unwrapped // by any of them
}

// ParsePassphrases reads the text of a passphrase file: the passphrase in the first
// line, earlier ones in the lines after it.
func ParsePassphrases(text string) (k Keys, err error) {
	k.unwrapped = &sealed.Unwrapped{}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			k.passphrases = append(k.passphrases, model.NewSecret(line))
		}
	}
	if len(k.passphrases) == 0 {
		return k, errors.New("it holds no passphrase")
	}
	return k, nil
}

// ParseIdentities reads the text of an age identity file.
func ParseIdentities(text string) (k Keys, err error) {
	k.unwrapped = &sealed.Unwrapped{}
	k.identities, err = sealed.ParseIdentities(text)
	return k, err
}

// And returns these keys and others.
func (k Keys) And(others Keys) Keys {
	if k.IsZero() {
		return others
	}
	k.passphrases = slices.Concat(k.passphrases, others.passphrases)
	k.identities = slices.Concat(k.identities, others.identities)
	return k
}

// Passphrases returns the passphrases among the keys, the present one first, for a recovery sheet.
func (k Keys) Passphrases() []model.Secret { return k.passphrases }

// IsZero reports whether there are none.
func (k Keys) IsZero() bool { return len(k.passphrases)+len(k.identities) == 0 }

// Opened has the master keys that they have opened, for another user of the same keys.
func (k Keys) Opened() *sealed.Unwrapped { return k.unwrapped }

// all returns the identities that unwrap master keys.
func (k Keys) all() ([]age.Identity, error) {
	all := append([]age.Identity{}, k.identities...)
	for _, p := range k.passphrases {
		i, err := sealed.PassphraseIdentity(p.Reveal())
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// connection is an open store and the repository in it.
type connection struct {
	store      objectstore.Store
	repository *stream.Repository
	marker     stream.Marker
	keys       *sealed.Ring
}

// connect opens the repository at a location. The caller closes it.
func connect(ctx context.Context, at Location, o objectstore.Options) (*connection, error) {
	store, err := objectstore.Open(ctx, at.URL, o)
	if err != nil {
		return nil, err
	}
	c := &connection{store: store}
	if err := c.open(ctx, at); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return c, nil
}

// connectProbed is connect for those who write: it finds out what the store can do, and opens it
// in the way that it needs.
func connectProbed(ctx context.Context, at Location, o objectstore.Options) (*connection, objectstore.Capabilities, error) {
	c, err := connect(ctx, at, o)
	if err != nil {
		return nil, objectstore.Capabilities{}, err
	}
	store, can, err := probed(ctx, c.store, at.URL, o)
	if err != nil {
		return nil, can, err
	}
	c.store = store
	if c.repository, err = stream.NewRepository(store, c.keys); err != nil {
		return nil, can, errors.Join(err, store.Close())
	}
	return c, can, nil
}

// probed finds out what an open store can do, and returns it, or another one that is opened in the way that it needs. It
// closes the one that it does not return.
func probed(ctx context.Context, store objectstore.Store, url string, o objectstore.Options) (objectstore.Store, objectstore.Capabilities, error) {
	can, err := store.Probe(ctx)
	if err != nil {
		return nil, can, errors.Join(fmt.Errorf("try the store: %w", err), store.Close())
	}
	if can.Conditional {
		return store, can, nil
	}
	if err := store.Close(); err != nil {
		return nil, can, err
	}
	o.Unconditional = true
	store, err = objectstore.Open(ctx, url, o)
	return store, can, err
}

func (c *connection) open(ctx context.Context, at Location) (err error) {
	c.marker, err = stream.ReadMarker(ctx, c.store)
	if errors.Is(err, objectstore.ErrNotFound) {
		return model.Errorf(model.CodeNotFound, "there is no copy of an appliance in %s: `holdfast offsite init %s` prepares it for one; is it the right URL?", at.URL, at.URL)
	}
	if err != nil {
		return explainMarker(err, at.URL)
	}
	c.keys, err = loadKeys(ctx, c.store, at.Keys)
	missing, isEarlier := errors.AsType[*stream.EarlierKeyError](err)
	if isEarlier && !errors.Is(err, sealed.ErrLocked) {
		return &model.Error{Code: model.CodeConflict, Err: err, Message: fmt.Sprintf("master key %d of %s cannot be read, and what was copied before the last rotation "+
			"needs it: bring the object %s back, from an earlier version in the bucket or from a backup of the store: %v", missing.Number, at.URL, sealed.KeyName(missing.Number), missing.Err)}
	}
	if isEarlier {
		return model.Errorf(model.CodeForbidden, "what opens master key %d of %s is missing: it opens what was copied before the last rotation; "+
			"write the earlier passphrase into the line after the present one, or give the earlier identity too", missing.Number, at.URL)
	}
	if errors.Is(err, sealed.ErrLocked) {
		return model.Errorf(model.CodeForbidden, "neither the passphrase nor an identity opens the master key in %s: the recovery sheet says which one does", at.URL)
	}
	if err != nil {
		return fmt.Errorf("load the master keys: %w", err)
	}
	c.repository, err = stream.NewRepository(c.store, c.keys)
	return err
}

// loadKeys returns the master keys that keys open.
func loadKeys(ctx context.Context, store objectstore.Store, keys Keys) (*sealed.Ring, error) {
	identities, err := keys.all()
	if err != nil {
		return nil, err
	}
	return stream.LoadKeys(ctx, store, func(wrapped []byte, number uint32) (sealed.Key, error) {
		return keys.unwrapped.Unwrap(wrapped, number, identities...)
	})
}

// explainMarker says what to do where a copy has lost its marker or was deleted, and returns other errors unchanged.
func explainMarker(err error, url string) error {
	if errors.Is(err, stream.ErrDeleted) {
		return &model.Error{Code: model.CodeConflict, Err: err, Message: fmt.Sprintf("what was in %s was deleted, but its versions are still there, behind "+
			"delete markers: bring it back, as \"The copy was deleted\" in docs/recovery.md shows; for a new copy choose another prefix", url)}
	}
	if !errors.Is(err, stream.ErrNoMarker) {
		return err
	}
	return &model.Error{Code: model.CodeConflict, Err: err, Message: fmt.Sprintf("%s has the copy of an appliance, but its marker, the object "+
		"`holdfast`, is missing: bring that object back, from an earlier version in the bucket or from a backup of the store; "+
		"for a new copy choose an empty prefix", url)}
}

func (c *connection) close() error { return c.store.Close() }
