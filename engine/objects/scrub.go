package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"holdfast/blobstore"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// scrubEvery is the time between scrubs, and scrubCheck the time between checks
	// for whether one is due.
	scrubEvery = 7 * 24 * time.Hour
	scrubCheck = 10 * time.Minute
	// scrubRate limits reading, in bytes per second.
	scrubRate = 16 << 20
	// scrubStep is the number of bytes read at a time, and scrubPage the number of
	// objects looked up at a time.
	scrubStep = 1 << 20
	scrubPage = 256
	// scrubDamaged bounds the number of recorded damaged objects.
	scrubDamaged = 1000
)

// scrubSetting is the setting that stores the state of the scrub.
const scrubSetting = "scrub"

// scrubState is the progress of the scrub, which continues after a restart, and
// the objects known to be damaged.
type scrubState struct {
	StartedAt   time.Time       `json:"started_at"`
	CompletedAt time.Time       `json:"completed_at"`
	Bucket      string          `json:"bucket"` // of the last object read
	Key         string          `json:"key"`
	Version     string          `json:"version"`
	InTrash     bool            `json:"in_trash,omitempty"` // all buckets were read, and the last object was in the trash
	Damaged     []damagedObject `json:"damaged"`
}

type damagedObject struct {
	Bucket  string    `json:"bucket"`
	Key     string    `json:"key"`
	Version string    `json:"version"`
	FoundAt time.Time `json:"found_at"`
	// Away means that the off-site copy had the only bytes, and has lost them.
	Away bool `json:"away,omitempty"`
}

// damaged returns the error for a client that requests a damaged object.
func damaged(err error) error {
	return &model.Error{
		Code:    model.CodeInternal,
		Message: "the object is damaged on the server's disk: upload it again, and have the operator check the disk",
		Err:     err,
	}
}

// isObjectDamage distinguishes bytes that are damaged or lost from temporary
// errors, such as too many open files.
func isObjectDamage(err error) bool {
	return errors.Is(err, blobstore.ErrDamaged) || errors.Is(err, blobstore.ErrNotFound) || errors.Is(err, syscall.EIO)
}

// reportDamage reports a damaged object in the log, in its organization's audit
// log and in recommendations. It only logs a temporary error.
func (s *Service) reportDamage(object model.Object, cause error) {
	if !isObjectDamage(cause) {
		s.core.Log.Error("an object cannot be read", "bucket", object.Bucket, "key", object.Key, "version", object.Version, "error", cause)
		return
	}
	if s.isKnownDamaged(object) { // further requests for the object cause no write
		return
	}
	organization, known, isAway := "", false, errors.Is(cause, ErrAway)
	err := s.updateScrub(func(tx *meta.Tx, it *scrubState) {
		if b, err := scrubbedBucket(tx, object.Bucket); err == nil {
			organization = b.Organization
		}
		known = it.knows(object)
		if !known && len(it.Damaged) < scrubDamaged {
			it.Damaged = append(it.Damaged, damagedObject{object.Bucket, object.Key, object.Version, s.core.Clock(), isAway})
		}
	})
	if err != nil {
		s.core.Log.Error("remember a damaged object", "error", err)
	}
	if known {
		return
	}
	where := "an object is damaged on the disk"
	if isAway {
		where = "an object is damaged or missing in the off-site copy, which had its only bytes"
	}
	s.core.Log.Error(where, "bucket", object.Bucket, "key", object.Key, "version", object.Version, "error", cause)
	s.core.Finish(s.core.System(model.ActionObjectDamaged, organization, objectResource(object.Bucket, object.Key)), cause)
}

// isKnownDamaged reports whether an object was reported as damaged, and not found whole since.
func (s *Service) isKnownDamaged(object model.Object) bool {
	it, err := meta.Value(s.core.Meta.View, readScrub)
	return err == nil && it.knows(object)
}

func (s *scrubState) knows(object model.Object) bool {
	for _, d := range s.Damaged {
		if d.Version == object.Version {
			return true
		}
	}
	return false
}

func readScrub(tx *meta.Tx) (s scrubState, err error) {
	if text := tx.Setting(scrubSetting); len(text) > 0 {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (s *Service) updateScrub(change func(*meta.Tx, *scrubState)) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		it, err := readScrub(tx)
		if err != nil {
			return err
		}
		change(tx, &it)
		text, err := json.Marshal(it)
		if err != nil {
			return err
		}
		return tx.PutSetting(scrubSetting, text)
	})
}

// Scrub periodically reads every object, at a low rate, until ctx ends.
func (s *Service) Scrub(ctx context.Context) {
	ticker := time.NewTicker(scrubCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := s.scrubIfDue(ctx); err != nil && ctx.Err() == nil {
			s.core.Log.Error("scrub objects", "error", err)
		}
	}
}

func (s *Service) scrubIfDue(ctx context.Context) error {
	it, err := meta.Value(s.core.Meta.View, readScrub)
	if err != nil {
		return err
	}
	if it.Bucket == "" && !core.IsPast(s.core.Clock(), it.CompletedAt, scrubEvery) {
		return nil
	}
	return s.scrubOnce(ctx)
}

// scrubOnce continues the scrub to its end. An object that it can read completely no longer counts as damaged.
func (s *Service) scrubOnce(ctx context.Context) error {
	limit := rate.NewLimiter(scrubRate, scrubStep)
	for {
		objects, inTrash, err := s.scrubNext()
		if err != nil {
			return err
		}
		if len(objects) == 0 {
			return s.updateScrub(func(tx *meta.Tx, it *scrubState) {
				it.Bucket, it.Key, it.Version, it.InTrash, it.CompletedAt = "", "", "", false, s.core.Clock()
				it.forgetGone(tx)
			})
		}
		known, err := meta.Value(s.core.Meta.View, readScrub)
		if err != nil {
			return err
		}
		whole := map[string]bool{} // by version
		for _, object := range objects {
			if whole[object.Version], err = s.scrubObject(ctx, limit, object, known.knows(object)); err != nil {
				return err
			}
		}
		last := objects[len(objects)-1]
		if err := s.updateScrub(func(_ *meta.Tx, it *scrubState) {
			it.Bucket, it.Key, it.Version, it.InTrash = last.Bucket, last.Key, last.Version, inTrash
			it.Damaged = slices.DeleteFunc(it.Damaged, func(d damagedObject) bool { return whole[d.Version] })
		}); err != nil {
			return err
		}
	}
}

// forgetGone removes damaged objects that have been replaced or deleted, and are not in the trash.
func (s *scrubState) forgetGone(tx *meta.Tx) {
	s.Damaged = slices.DeleteFunc(s.Damaged, func(d damagedObject) bool {
		_, err := tx.ObjectOfVersion(d.Bucket, d.Key, d.Version)
		return err != nil
	})
}

// scrubbedBucket returns a bucket, or one in the trash.
func scrubbedBucket(tx *meta.Tx, id string) (model.Bucket, error) {
	b, err := tx.Buckets().Get(id)
	if !errors.Is(err, meta.ErrNotFound) {
		return b, err
	}
	trashed, err := tx.TrashedBuckets().Get(id)
	return trashed.Bucket, err
}

// scrubNext returns the next objects with their versions, none at the end: first those in buckets, including deleted ones, and
// then those in the trash.
func (s *Service) scrubNext() (objects []model.Object, inTrash bool, err error) {
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		it, err := readScrub(tx)
		if err == nil && !it.InTrash {
			objects, err = it.nextInBuckets(tx)
			it.Version = ""
		}
		if err != nil || len(objects) > 0 {
			return err
		}
		inTrash = true
		for _, o := range tx.TrashedObjects().After(it.Version, scrubPage) {
			objects = append(objects, o.Object)
		}
		return nil
	})
	return objects, inTrash, err
}

func (s *scrubState) nextInBuckets(tx *meta.Tx) (objects []model.Object, err error) {
	var buckets []string
	add := func(b model.Bucket) error {
		buckets = append(buckets, b.ID)
		return nil
	}
	if err := errors.Join(tx.Buckets().All(add), tx.TrashedBuckets().All(func(b model.TrashedBucket) error { return add(b.Bucket) })); err != nil {
		return nil, err
	}
	slices.Sort(buckets)
	for _, bucket := range buckets {
		if bucket < s.Bucket {
			continue
		}
		key, version := "", ""
		if bucket == s.Bucket {
			key, version = s.Key, s.Version
		}
		page, err := tx.ListKept(bucket, key, version, scrubPage)
		for _, v := range page.Versions {
			objects = append(objects, v.Object)
		}
		if err != nil || len(objects) > 0 {
			return objects, err
		}
	}
	return nil, nil
}

// scrubObject reads an object and reports whether it is intact. An object deleted meanwhile is not an error. What is away is
// fetched only if it is known to be damaged: what is not here is not damaged here, and the copy is verified by itself.
func (s *Service) scrubObject(ctx context.Context, limit *rate.Limiter, object model.Object, known bool) (whole bool, err error) {
	if object.DeleteMarker || !known && s.core.Blobs.IsAway(blobstore.Ref(object.Blob)) {
		return true, nil
	}
	r, err := s.core.Blobs.Open(ctx, blobstore.Ref(object.Blob))
	if err == nil {
		defer r.Close()
		for offset := int64(0); err == nil && offset < object.SizeBytes; offset += scrubStep {
			n := min(scrubStep, object.SizeBytes-offset)
			if err := limit.WaitN(ctx, int(n)); err != nil {
				return false, err
			}
			if known { // it may be away, which Verify does not read
				_, err = io.Copy(io.Discard, io.NewSectionReader(r, offset, n))
				continue
			}
			err = r.Verify(offset, n)
		}
		if err == nil && r.Size() != object.SizeBytes {
			err = fmt.Errorf("%d of %d bytes: %w", r.Size(), object.SizeBytes, blobstore.ErrDamaged)
		}
	}
	if err == nil {
		return true, nil
	}
	now, lookupErr := meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) (model.Object, error) {
		return tx.ObjectOfVersion(object.Bucket, object.Key, object.Version)
	})
	if lookupErr != nil || now.Blob != object.Blob {
		return false, nil
	}
	if isDamagedHere(err) && s.core.Blobs.ReadCopy(blobstore.Ref(object.Blob)) {
		return s.fetchAgain(ctx, object, err) == nil, ctx.Err()
	}
	if errors.Is(err, ErrAway) && !errors.Is(err, blobstore.ErrDamaged) { // the store does not answer
		return false, nil
	}
	if errors.Is(err, blobstore.ErrNotFound) {
		err = fmt.Errorf("%w: its bytes are gone", err)
	}
	s.reportDamage(object, err)
	return false, nil
}

// DamagedObjects returns an organization's damaged objects.
func DamagedObjects(tx *meta.Tx, organization string) (found []advice.DamagedObject, err error) {
	s, err := readScrub(tx)
	if err != nil {
		return nil, err
	}
	for _, d := range s.Damaged {
		b, err := scrubbedBucket(tx, d.Bucket)
		o, objectErr := tx.ObjectOfVersion(d.Bucket, d.Key, d.Version)
		if err != nil || b.Organization != organization || objectErr != nil {
			continue
		}
		_, keptErr := tx.KeptVersion(d.Bucket, d.Key, d.Version)
		found = append(found, advice.DamagedObject{Bucket: b, Key: d.Key, SizeBytes: o.SizeBytes, FoundAt: d.FoundAt, Away: d.Away, InTrash: keptErr != nil})
	}
	return found, nil
}
