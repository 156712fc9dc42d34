package objects

import (
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// keyAct is what a restore does with a key.
type keyAct int

const (
	keyUnchanged keyAct = iota
	keySkipped          // it was written since the start, has expired, or is damaged
	keyRemoved          // it did not exist: its object goes to the trash, or gets a delete marker
	keyRestored         // its object comes back from the trash, or is copied
)

// keyPlan is what a restore does with a key.
type keyPlan struct {
	meta.KeyState
	act    keyAct
	marker model.Object // for a key that is removed where versions are kept
	locks  time.Time    // by which retentions end
}

// decide returns what a restore does with a key.
func (s *Service) decide(b model.Bucket, r model.BucketRestore, state meta.KeyState) keyPlan {
	plan := keyPlan{KeyState: state}
	exists, existed := holdsObject(state.Now), holdsObject(state.Then)
	switch {
	case state.Damaged || state.Changed.After(r.StartedAt):
		plan.act = keySkipped
	case !exists && !existed, exists && existed && state.Now.Origin() == state.Then.Origin():
		plan.act = keyUnchanged
	case !existed:
		plan.act = keyRemoved
	case s.hasExpired(b, state.Then):
		plan.act = keySkipped // it would be removed again immediately
	default:
		plan.act = keyRestored
	}
	return plan
}

func holdsObject(o model.Object) bool { return o.Version != "" && !o.DeleteMarker }

func (p keyPlan) count() (c model.BucketRestoreCount) {
	switch p.act {
	case keyUnchanged:
		c.Unchanged = 1
	case keySkipped:
		c.Skipped = 1
	case keyRemoved:
		c.Removed = 1
	case keyRestored:
		c.Restored, c.Bytes = 1, p.Then.SizeBytes
	}
	return c
}

// errKeyLocked means that Object Lock keeps a version that would have to move to the trash.
var errKeyLocked = errors.New("a version is locked")

// apply does what is planned in the transaction. copied says what is left to be copied, with an empty key if nothing is.
func (p keyPlan) apply(tx *meta.Tx, b model.Bucket, at time.Time) (copied model.VersionCopy, err error) {
	switch {
	case p.act == keyRemoved && b.Versioning != model.VersioningOff:
		return copied, p.mark(tx, at)
	case p.act == keyRemoved:
		return copied, p.trash(tx, b, at)
	case p.act != keyRestored:
		return copied, nil
	case b.Versioning == model.VersioningOff:
		return copied, p.exchange(tx, b, at)
	}
	return p.raise(tx, b, at)
}

// mark makes a delete marker the latest version.
func (p keyPlan) mark(tx *meta.Tx, at time.Time) error {
	replaced, err := tx.PutObject(p.marker)
	if err != nil || replaced.Version == "" {
		return err
	}
	return tx.KeepDeleted(replaced, at)
}

// trash moves the current object to the trash.
func (p keyPlan) trash(tx *meta.Tx, b model.Bucket, at time.Time) error {
	old, err := tx.DeleteObject(b.ID, p.Key, at)
	if err != nil {
		return err
	}
	return tx.KeepDeleted(old, at)
}

// exchange brings an object back from the trash in place of the current one.
func (p keyPlan) exchange(tx *meta.Tx, b model.Bucket, at time.Time) error {
	if holdsObject(p.Now) {
		if err := p.trash(tx, b, at); err != nil {
			return err
		}
	}
	_, err := tx.UntrashObject(p.Then.Version, at)
	return err
}

// raise makes a version the latest again where versions are kept. Their order is that of their ids, so a version with later
// ones has to be copied.
func (p keyPlan) raise(tx *meta.Tx, b model.Bucket, at time.Time) (copied model.VersionCopy, err error) {
	if p.Trashed {
		if err := p.untrashVersion(tx, b, at); err != nil {
			return copied, err
		}
	}
	latest, err := tx.LatestVersion(b.ID, p.Key)
	if err != nil || latest.Version == p.Then.Version {
		return copied, err
	}
	return model.VersionCopy{Key: p.Key, Version: p.Then.VersionID(), Latest: latest.Version}, nil
}

// untrashVersion brings a version back from the trash to its place. A null version takes the place of another one.
func (p keyPlan) untrashVersion(tx *meta.Tx, b model.Bucket, at time.Time) error {
	if !p.Then.Versioned {
		null, err := tx.ObjectVersion(b.ID, p.Key, model.NullVersion)
		switch {
		case errors.Is(err, meta.ErrNotFound):
		case err != nil:
			return err
		case null.Lock != nil && (null.Lock.Hold || null.Lock.Retains(p.locks)):
			return errKeyLocked
		default:
			if null, err = tx.DeleteVersion(b.ID, p.Key, model.NullVersion, at); err == nil {
				err = tx.KeepDeleted(null, at)
			}
			if err != nil {
				return err
			}
		}
	}
	_, err := tx.UntrashObject(p.Then.Version, at)
	return err
}
