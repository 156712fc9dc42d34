package objects

import (
	"errors"
	"fmt"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

var (
	// ErrLocked means that Object Lock keeps a version.
	ErrLocked = errors.New("locked")
	// ErrNoLock means that a bucket has no Object Lock.
	ErrNoLock = errors.New("no Object Lock")
	// ErrBucketState means that the versioning of a bucket does not admit a change.
	ErrBucketState = errors.New("bucket state")
)

func lockedError(format string, args ...any) error {
	return &model.Error{Code: model.CodeForbidden, Message: "the version is locked: " + fmt.Sprintf(format, args...), Err: ErrLocked}
}

func noLock() error {
	return &model.Error{Code: model.CodeValidation, Message: "the bucket has no Object Lock", Err: ErrNoLock}
}

func bucketState(message string) error {
	return &model.Error{Code: model.CodeConflict, Message: message, Err: ErrBucketState}
}

// refuseLocked refuses to remove a version that is locked. bypass asks to remove it in spite of governance.
func (s *Service) refuseLocked(call *model.Call, o model.Object, bypass bool) error {
	switch {
	case o.Lock == nil:
		return nil
	case o.Lock.Hold:
		return lockedError("it has a legal hold")
	case !o.Lock.Retains(s.core.LockClock()):
		return nil
	case o.Lock.Mode == model.LockGovernance && bypass:
		return permitBypass(call)
	}
	return lockedError("it is retained until %s (%s)", o.Lock.Until.UTC().Format(time.RFC3339), o.Lock.Mode)
}

// permitBypass checks that the caller may override governance.
func permitBypass(call *model.Call) error {
	return core.Permit(call, []model.Operation{
		model.OperationFor(model.ActionObjectDelete), {Action: call.Operation.Action, Scope: model.ScopeStorageUpdate, Destructive: true},
	})
}

// refuseLockedVersion refuses to delete a bucket with a locked version.
func (s *Service) refuseLockedVersion(tx *meta.Tx, call *model.Call, bucket string) error {
	locked, err := tx.LockedVersion(bucket, s.core.LockClock())
	if errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.refuseLocked(call, locked, false)
}

// lockOf returns the lock of a new version: the client's, or the bucket's retention.
func lockOf(b model.Bucket, asked *model.ObjectLock, at time.Time) (*model.ObjectLock, error) {
	switch {
	case b.Lock == nil && asked != nil:
		return nil, noLock()
	case b.Lock == nil || b.Lock.Mode == "" || asked != nil && asked.Mode != "":
		return asked, nil
	}
	lock := model.ObjectLock{Mode: b.Lock.Mode, Until: b.Lock.Until(at)}
	lock.Hold = asked != nil && asked.Hold
	return &lock, nil
}

// permitLock refuses a lock that a client asks for with a new version, unless the caller may change versions.
func (s *Service) permitLock(call *model.Call, b model.Bucket, asked *model.ObjectLock) error {
	now := s.core.LockClock()
	if _, err := lockOf(b, asked, now); err != nil || asked == nil {
		return err
	}
	if err := checkRetention(asked.Until, now); err != nil {
		return err
	}
	return core.Permit(call, []model.Operation{{Action: call.Operation.Action, Scope: model.ScopeStorageUpdate}})
}

// checkRetention refuses a retention that is longer than those of buckets.
func checkRetention(until, now time.Time) error {
	if until.After(now.AddDate(0, 0, model.MaxLockDays)) {
		return model.Invalid("retention.until", "must be within %d days", model.MaxLockDays)
	}
	return nil
}

// VersionName names a version of a key, "" for the current one.
type VersionName struct{ Bucket, Key, Version string }

// Retention is until when a version is retained, with an empty mode that it is not.
type Retention struct {
	Mode  model.LockMode
	Until time.Time
}

func (r *Retention) validate(now time.Time) error {
	if r == nil {
		return nil
	}
	if r.Mode != "" && !r.Until.After(now) {
		return model.Invalid("retention.until", "must be in the future")
	}
	return checkRetention(r.Until, now)
}

// changeLock sets the retention and the legal hold of a version.
func (s *Service) changeLock(call *model.Call, o *model.Object, change ObjectChange) error {
	lock, now := model.ObjectLock{}, s.core.LockClock()
	if o.Lock != nil {
		lock = *o.Lock // others may read what it points to
	}
	if r := change.Retention; r != nil {
		if lock.Retains(now) && (r.Mode != lock.Mode || r.Until.Before(lock.Until)) {
			if err := s.refuseLocked(call, model.Object{Lock: &model.ObjectLock{Mode: lock.Mode, Until: lock.Until}}, change.Bypass); err != nil {
				return err
			}
		}
		lock.Mode, lock.Until = r.Mode, r.Until
	}
	if change.Hold != nil {
		lock.Hold = *change.Hold
	}
	o.Lock = &lock
	return nil
}

// changeVersion changes the record of a version.
func (s *Service) changeVersion(call *model.Call, name VersionName, locks bool, change func(*model.Object) error) error {
	if err := model.ValidateObjectKey("key", name.Key); err != nil {
		return err
	}
	b, release, err := s.lockObject(call, name.Bucket, name.Key)
	if err != nil {
		return err
	}
	defer release()
	if locks && b.Lock == nil {
		return noLock()
	}
	call.Resource = objectResource(name.Bucket, name.Key)
	o, err := s.version(name.Bucket, name.Key, name.Version)
	if err != nil {
		return err
	}
	call.Note("version", o.VersionID())
	return s.core.Change(call, func(tx *meta.Tx) error {
		_, err := tx.ChangeVersion(name.Bucket, name.Key, o.VersionID(), change)
		return err
	})
}
