package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"holdfast/blobstore"
	"holdfast/engine/advice"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// scrubEvery is how often every object is read, and scrubCheck how often it
	// is looked whether that is due.
	scrubEvery = 7 * 24 * time.Hour
	scrubCheck = 10 * time.Minute
	// scrubRate bounds how much is read, in bytes a second.
	scrubRate = 16 << 20
	// scrubStep is how much of an object is read at a time, in bytes, and
	// scrubPage how many objects are looked up.
	scrubStep = 1 << 20
	scrubPage = 256
	// scrubDamaged bounds how many damaged objects are remembered.
	scrubDamaged = 1000
)

// scrubSetting is the name under which the state of the scrub is kept.
const scrubSetting = "scrub"

// scrubState says how far the scrub is, so that a restart goes on with it, and
// what is known to be damaged.
type scrubState struct {
	StartedAt   time.Time       `json:"started_at"`
	CompletedAt time.Time       `json:"completed_at"`
	Bucket      string          `json:"bucket"` // the last one looked at, and the last key in it
	Key         string          `json:"key"`
	Damaged     []damagedObject `json:"damaged"`
}

type damagedObject struct {
	Bucket  string    `json:"bucket"`
	Key     string    `json:"key"`
	Version string    `json:"version"`
	FoundAt time.Time `json:"found_at"`
}

// damaged says to a client that the bytes are not those that were stored.
func damaged(err error) error {
	return &model.Error{
		Code:    model.CodeInternal,
		Message: "the object is damaged on the server's disk: upload it again, and have the operator check the disk",
		Err:     err,
	}
}

// isObjectDamage tells bytes that are not those that were stored, or that the disk does
// not have any more, from what keeps them from being read for a while, such as
// too many open files.
func isObjectDamage(err error) bool {
	return errors.Is(err, blobstore.ErrDamaged) || errors.Is(err, blobstore.ErrNotFound) || errors.Is(err, syscall.EIO)
}

// reportDamage names an object whose bytes are not those that were stored, in
// the log, in its organization's audit log, and to who asks for advice. What is
// no damage is logged.
func (e *Engine) reportDamage(object model.Object, cause error) {
	if !isObjectDamage(cause) {
		e.log.Error("an object cannot be read", "bucket", object.Bucket, "key", object.Key, "version", object.Version, "error", cause)
		return
	}
	known := false
	err := e.meta.View(func(tx *meta.Tx) error {
		s, err := readScrub(tx)
		known = s.knows(object)
		return err
	})
	if err == nil && known { // whoever asks for it costs no write
		return
	}
	organization := ""
	err = e.updateScrub(func(tx *meta.Tx, s *scrubState) {
		if b, err := tx.Buckets().Get(object.Bucket); err == nil {
			organization = b.Organization
		}
		known = s.knows(object)
		if !known && len(s.Damaged) < scrubDamaged {
			s.Damaged = append(s.Damaged, damagedObject{object.Bucket, object.Key, object.Version, e.clock()})
		}
	})
	if err != nil {
		e.log.Error("remember a damaged object", "error", err)
	}
	if known {
		return
	}
	e.log.Error("an object is damaged on the disk", "bucket", object.Bucket, "key", object.Key, "version", object.Version, "error", cause)
	e.Finish(e.system(model.ActionObjectDamaged, organization, objectResource(object.Bucket, object.Key)), cause)
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

func (e *Engine) updateScrub(change func(*meta.Tx, *scrubState)) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		s, err := readScrub(tx)
		if err != nil {
			return err
		}
		change(tx, &s)
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return tx.PutSetting(scrubSetting, text)
	})
}

// scrub reads every object from time to time, slowly, until ctx ends.
func (e *Engine) scrub(ctx context.Context) {
	ticker := time.NewTicker(scrubCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := e.scrubIfDue(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("scrub objects", "error", err)
		}
	}
}

func (e *Engine) scrubIfDue(ctx context.Context) error {
	var s scrubState
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		s, err = readScrub(tx)
		return err
	}); err != nil {
		return err
	}
	if s.Bucket == "" && e.clock().Sub(s.CompletedAt) < scrubEvery {
		return nil
	}
	return e.scrubOnce(ctx)
}

// scrubOnce goes on where the scrub was, and reads to the end. What it has read
// whole is not damaged any more.
func (e *Engine) scrubOnce(ctx context.Context) error {
	limit := rate.NewLimiter(scrubRate, scrubStep)
	for {
		objects, err := e.scrubNext()
		if err != nil {
			return err
		}
		if len(objects) == 0 {
			return e.updateScrub(func(tx *meta.Tx, s *scrubState) {
				s.Bucket, s.Key, s.CompletedAt = "", "", e.clock()
				s.forgetGone(tx)
			})
		}
		whole := map[string]bool{} // by version
		for _, object := range objects {
			if whole[object.Version], err = e.scrubObject(ctx, limit, object); err != nil {
				return err
			}
		}
		last := objects[len(objects)-1]
		if err := e.updateScrub(func(_ *meta.Tx, s *scrubState) {
			s.Bucket, s.Key = last.Bucket, last.Key
			s.Damaged = slices.DeleteFunc(s.Damaged, func(d damagedObject) bool { return whole[d.Version] })
		}); err != nil {
			return err
		}
	}
}

// forgetGone forgets damaged objects that were replaced or deleted since.
func (s *scrubState) forgetGone(tx *meta.Tx) {
	s.Damaged = slices.DeleteFunc(s.Damaged, func(d damagedObject) bool {
		o, err := tx.Object(d.Bucket, d.Key)
		return err != nil || o.Version != d.Version
	})
}

// scrubNext returns the objects that are next, none at the end.
func (e *Engine) scrubNext() (objects []model.Object, err error) {
	err = e.meta.ViewFlushed(func(tx *meta.Tx) error {
		s, err := readScrub(tx)
		if err != nil {
			return err
		}
		return tx.Buckets().All(func(b model.Bucket) error {
			if len(objects) > 0 || b.ID < s.Bucket {
				return nil
			}
			after := ""
			if b.ID == s.Bucket {
				after = s.Key
			}
			objects, err = tx.NextObjects(b.ID, after, scrubPage)
			return err
		})
	})
	return objects, err
}

// scrubObject reads an object and reports whether it could read it whole. What is
// gone meanwhile is fine.
func (e *Engine) scrubObject(ctx context.Context, limit *rate.Limiter, object model.Object) (whole bool, err error) {
	r, err := e.blobs.Open(blobstore.Ref(object.Blob))
	if err == nil {
		defer r.Close()
		for offset := int64(0); err == nil && offset < object.SizeBytes; offset += scrubStep {
			n := min(scrubStep, object.SizeBytes-offset)
			if err := limit.WaitN(ctx, int(n)); err != nil {
				return false, err
			}
			err = r.Verify(offset, n)
		}
		if err == nil && r.Size() != object.SizeBytes {
			err = fmt.Errorf("%d of %d bytes: %w", r.Size(), object.SizeBytes, blobstore.ErrDamaged)
		}
	}
	now, lookupErr := e.object(object.Bucket, object.Key)
	if err == nil || lookupErr != nil || now.Blob != object.Blob {
		return err == nil, nil
	}
	if errors.Is(err, blobstore.ErrNotFound) {
		err = fmt.Errorf("%w: its bytes are gone", err)
	}
	e.reportDamage(object, err)
	return false, nil
}

// damagedObjects returns the objects of an organization whose bytes are not
// those that were stored.
func damagedObjects(tx *meta.Tx, organization string) (found []advice.DamagedObject, err error) {
	s, err := readScrub(tx)
	if err != nil {
		return nil, err
	}
	for _, d := range s.Damaged {
		b, err := tx.Buckets().Get(d.Bucket)
		o, objectErr := tx.Object(d.Bucket, d.Key)
		if err != nil || b.Organization != organization || objectErr != nil || o.Version != d.Version {
			continue
		}
		found = append(found, advice.DamagedObject{Bucket: b, Key: d.Key, SizeBytes: o.SizeBytes, FoundAt: d.FoundAt})
	}
	return found, nil
}
