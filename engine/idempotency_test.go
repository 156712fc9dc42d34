package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

const onceRoute = "POST /v1/buckets"

// reopenFiles closes the engine without ending its running calls, and opens the next one.
func (a *appliance) reopenFiles(t *testing.T) *appliance {
	t.Helper()
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return openEngine(t, a.cfg)
}

func beginOnce(t *testing.T, a *appliance, key, content string) (*model.Call, string, error) {
	t.Helper()
	call := a.call(model.ActionBucketCreate)
	call.Repeatable = &model.Repeatable{Key: key, Route: onceRoute, Content: []byte(content)}
	err := a.Core.ClaimIdempotencyKey(call)
	call.Repeatable = nil // the operation would claim it again
	if first, ok := errors.AsType[*core.FirstAnswer](err); ok {
		return call, string(first.Data), nil
	}
	return call, "", err
}

// After a crash between an operation and its response, the key reports the operation as done and its response as lost.
// A crash before the operation leaves the key free.
func TestOnceAfterACrash(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, t.TempDir()))
	done, _, err := beginOnce(t, a, "done", "x")
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Objects.BucketCreate(done, objects.NewBucket{Project: a.project, Name: "made"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := beginOnce(t, a, "undone", "x"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"done", "undone"} {
		if _, _, err := beginOnce(t, a, key, "x"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "under way") {
			t.Errorf("%s meanwhile: %v", key, err)
		}
	}
	next := a.reopenFiles(t)
	if _, _, err := beginOnce(t, next, "done", "x"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), b.ID) {
		t.Errorf("what was done: %v", err)
	}
	if call, answer, err := beginOnce(t, next, "undone", "x"); err != nil || answer != "" || call.Idempotent == "" {
		t.Errorf("what was not done: %q, %v", answer, err)
	}
}

// Responses are kept across a restart, sealed, for a day.
func TestOnceKeepsAnswers(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, t.TempDir())
	var moved atomic.Int64
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
	a := openEngine(t, cfg)
	const secret = `{"password":"correct horse battery staple"}`
	call, _, err := beginOnce(t, a, "k", secret)
	if err != nil {
		t.Fatal(err)
	}
	a.Core.EndIdempotent(call, []byte(secret))
	next := a.reopenFiles(t)
	if _, answer, err := beginOnce(t, next, "k", secret); err != nil || answer != secret {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	file, err := os.ReadFile(filepath.Join(cfg.DataDir, core.MetadataFile))
	if err != nil || bytes.Contains(file, []byte("battery")) {
		t.Errorf("the metadata has the answer in the clear (%v)", err)
	}
	if _, _, err := beginOnce(t, next, "k", "other"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "another request") {
		t.Errorf("another request: %v", err)
	}
	moved.Store(int64(core.IdempotencyLife))
	believe(next.Engine)
	if call, answer, err := beginOnce(t, next, "k", "other"); err != nil || answer != "" {
		t.Errorf("a day later: %q, %v", answer, err)
	} else {
		next.Core.EndIdempotent(call, nil)
	}
}

// Expired responses are removed, and the oldest ones of a caller that has too many.
func TestOnceIsBounded(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, t.TempDir())
	var moved atomic.Int64
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
	a := openEngine(t, cfg)
	insert := func(n int) {
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
			for i := range n {
				id := core.FormatID("", a.Core.IDs.Next(a.Core.Clock()))
				if err := tx.IdempotentRequests().Insert(model.IdempotentRequest{
					ID: id, APIKey: "key_1", Hash: []byte(id), Answer: []byte{byte(i)}, CreatedAt: a.Core.Clock(),
				}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() (count int) {
		if err := a.Core.ExpireIdempotent(); err != nil {
			t.Fatal(err)
		}
		_ = a.Core.Meta.View(func(tx *meta.Tx) error {
			return tx.IdempotentRequests().All(func(model.IdempotentRequest) error { count++; return nil })
		})
		return count
	}
	insert(core.IdempotencyKeep + 5)
	if n := kept(); n != core.IdempotencyKeep {
		t.Errorf("%d are kept", n)
	}
	moved.Store(int64(core.IdempotencyLife / 2))
	insert(7)
	moved.Store(int64(core.IdempotencyLife))
	believe(a.Engine)
	if n := kept(); n != 7 {
		t.Errorf("%d are kept a day later", n)
	}
}

// TestLargeAnswersAreNotKept: of a large answer only what was done is kept. A request that has done nothing may be repeated.
func TestLargeAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, t.TempDir()))
	large := bytes.Repeat([]byte("x"), core.MaxKeptAnswer+1)
	for _, done := range []bool{false, true} {
		key := fmt.Sprint(done)
		call, _, err := beginOnce(t, a, key, "content")
		if err != nil {
			t.Fatal(err)
		}
		if done {
			if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
				return core.MarkIdempotentDone(tx, call.Idempotent, model.Resource{Type: model.ResourceDatabase, ID: "db_1"})
			}); err != nil {
				t.Fatal(err)
			}
		}
		a.Core.EndIdempotent(call, large)
		again, answer, err := beginOnce(t, a, key, "content")
		if answer != "" || (model.CodeOf(err) == model.CodeConflict) != done || (err == nil) == done {
			t.Errorf("done %v: %q, %v", done, answer, err)
		}
		if err == nil {
			a.Core.EndIdempotent(again, nil)
		}
	}
	for n := range 2 * core.IdempotencyKeepBytes / core.MaxKeptAnswer {
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
			id := core.FormatID("", a.Core.IDs.Next(a.Core.Clock()))
			return tx.IdempotentRequests().Insert(model.IdempotentRequest{
				ID: id, APIKey: "key_1", Hash: fmt.Append(nil, n), Answer: large[:core.MaxKeptAnswer], CreatedAt: a.Core.Clock(),
			})
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Core.ExpireIdempotent(); err != nil {
		t.Fatal(err)
	}
	kept := 0
	_ = a.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.IdempotentRequests().All(func(r model.IdempotentRequest) error { kept += len(r.Answer); return nil })
	})
	if kept > core.IdempotencyKeepBytes || kept < core.IdempotencyKeepBytes/2 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// beginUpload sends an upload with an Idempotency-Key, and does not end its call.
func beginUpload(t *testing.T, a *appliance, bucket, key, content string) error {
	t.Helper()
	call := a.call(model.ActionObjectUpload)
	call.Repeatable = &model.Repeatable{Key: key, Route: "POST /v1/buckets/" + bucket + "/objects", Content: []byte("key=" + key)}
	_, err := a.Objects.ObjectUpload(t.Context(), call, objects.Upload{
		Bucket: bucket, Key: key, ContentType: "text/plain", Body: strings.NewReader(content), Length: int64(len(content)),
	})
	return err
}

// An upload whose response was lost in a crash is stored, and is not stored again; one that a crash interrupted earlier
// leaves the key free.
func TestOnceOfUploadsAfterACrash(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, t.TempDir()))
	b := a.bucket(t, "files")
	if err := beginUpload(t, a, b, "done", "first"); err != nil {
		t.Fatal(err)
	}
	undone := a.call(model.ActionObjectUpload)
	undone.Repeatable = &model.Repeatable{Key: "undone", Route: "POST /v1/buckets/" + b + "/objects"}
	if err := a.Core.ClaimIdempotencyKeyStreamed(undone, nil); err != nil {
		t.Fatal(err)
	}
	if err := beginUpload(t, a, b, "done", "first"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "under way") {
		t.Errorf("meanwhile: %v", err)
	}
	next := a.reopenFiles(t)
	for _, content := range []string{"first", "other"} {
		if err := beginUpload(t, next, b, "done", content); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), b+"/done") {
			t.Errorf("what was stored, sent again as %s: %v", content, err)
		}
	}
	if err := beginUpload(t, next, b, "undone", "second"); err != nil {
		t.Errorf("what was not stored: %v", err)
	}
}

// A clock that is years off for some minutes has no request with an Idempotency-Key carried out twice, whether the request
// came before or during that, and keeps no key in use for longer than others.
func TestOnceWhileClockIsWrong(t *testing.T) {
	t.Parallel()
	const years = 10 * 365 * 24 * time.Hour
	for name, off := range map[string]time.Duration{"ahead": years, "behind": -years} {
		cfg := testConfig(t, t.TempDir())
		by := ahead(&cfg)
		a := openEngine(t, cfg)
		first := func(key string) {
			t.Helper()
			call, answer, err := beginOnce(t, a, key, "x")
			if err != nil || answer != "" {
				t.Fatalf("%s: %q, %v", name, answer, err)
			}
			a.Core.EndIdempotent(call, []byte("done"))
		}
		again := func(keys ...string) {
			t.Helper()
			if err := a.Core.ExpireIdempotent(); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if call, answer, err := beginOnce(t, a, key, "x"); err != nil || answer != "done" {
					t.Errorf("%s: the request %s again: %q, %v", name, key, answer, err)
					a.Core.EndIdempotent(call, nil)
				}
			}
		}
		first("before")
		by.Store(int64(off))
		again("before")
		first("during")
		by.Store(0)
		again("before", "during")
		by.Store(int64(core.IdempotencyLife + time.Hour))
		a.Core.Guard.Believed.Time = a.Core.WallClock()
		if err := a.Core.ExpireIdempotent(); err != nil {
			t.Fatal(err)
		}
		first("during")
	}
}
