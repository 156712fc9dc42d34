package meta

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"holdfast/engine/model"
)

// DeletionKey returns the ByDeletion key for a deletion at time at.
func DeletionKey(at time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()))
}

// KeepDeleted moves a version that this transaction has removed to the trash, with its
// bytes. It ignores one whose record was damaged.
func (tx *Tx) KeepDeleted(old model.Object, at time.Time) error {
	if old.Blob == "" && !old.DeleteMarker {
		return nil
	}
	b, err := tx.Buckets().Get(old.Bucket)
	if err != nil {
		return err
	}
	if err := tx.claimBytes(old); err != nil {
		return err
	}
	old.NoncurrentAt = time.Time{}
	return tx.TrashedObjects().Insert(model.TrashedObject{Object: old, Organization: b.Organization, DeletedAt: at})
}

// PurgeObject removes a trashed object permanently. Moments before it was deleted can
// then not be restored any more.
func (tx *Tx) PurgeObject(version string) error {
	old, err := tx.TrashedObjects().Get(version)
	if err != nil {
		return err
	}
	if err := tx.releaseBytes(old.Object); err != nil {
		return err
	}
	return errors.Join(tx.TrashedObjects().Delete(version), tx.LoseHistory(old.Bucket, old.DeletedAt))
}

// UntrashObject restores a trashed object, to its place among the versions of its key.
// It returns ErrExists if it is a null version and another object is one now, and
// ErrNotFound if the bucket is gone.
func (tx *Tx) UntrashObject(version string, at time.Time) (model.Object, error) {
	old, err := tx.TrashedObjects().Get(version)
	if err != nil {
		return model.Object{}, err
	}
	if err := tx.noteAbsence(&old.Object, model.Absence{From: old.DeletedAt, Until: at}); err != nil {
		return old.Object, err
	}
	if err := tx.place(old.Object, at); err != nil {
		return old.Object, err
	}
	return old.Object, tx.TrashedObjects().Delete(version)
}

// noteAbsence adds an absence to those of a version, of which only the newest are kept.
func (tx *Tx) noteAbsence(o *model.Object, a model.Absence) error {
	o.Absences = append(slices.Clone(o.Absences), a)
	if len(o.Absences) <= model.MaxAbsences {
		return nil
	}
	forgotten := o.Absences[0]
	o.Absences = o.Absences[1:]
	return tx.LoseHistory(o.Bucket, forgotten.Until)
}

// KeptVersion returns the version of a key in a bucket that is not in the trash, or
// ErrNotFound.
func (tx *Tx) KeptVersion(bucket, key, version string) (model.Object, error) {
	return tx.locate(bucket).find(bucket, key, version)
}

// ObjectOfVersion returns the version of a key, including in a trashed bucket;
// otherwise the trashed object with it; otherwise ErrNotFound.
func (tx *Tx) ObjectOfVersion(bucket, key, version string) (model.Object, error) {
	object, err := tx.keptObjects(bucket).find(bucket, key, version)
	if !errors.Is(err, ErrNotFound) {
		return object, err
	}
	trashed, err := tx.TrashedObjects().Get(version)
	return trashed.Object, err
}
