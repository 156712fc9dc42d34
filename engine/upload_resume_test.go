package engine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/internal/testenv"
)

// uploads are a test's resumable uploads into one bucket.
type uploads struct {
	t      *testing.T
	a      *appliance
	bucket string
}

func newUploads(t *testing.T) *uploads {
	t.Helper()
	a := startEngine(t)
	return &uploads{t, a, a.bucket(t, "files")}
}

func (u *uploads) create(key string, length int64, ifAbsent bool) model.Upload {
	u.t.Helper()
	made, err := u.a.Objects.UploadCreate(u.t.Context(), u.a.call(model.ActionUploadCreate), objects.NewUpload{Bucket: u.bucket, Key: key, Length: length, IfAbsent: ifAbsent})
	if err != nil {
		u.t.Fatal(err)
	}
	return made
}

// fill creates an upload with all its bytes, and keeps the sweep from completing it.
func (u *uploads) fill(key, body string) model.Upload {
	u.t.Helper()
	made := u.create(key, int64(len(body)), false)
	made, release, err := u.a.Objects.ClaimUpload(u.a.call(model.ActionUploadAppend), u.bucket, made.ID, "a test")
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(release)
	if made, err = u.a.Objects.AppendPart(u.a.call(model.ActionUploadAppend), made, strings.NewReader(body)); err != nil {
		u.t.Fatal(err)
	}
	return made
}

func (u *uploads) send(ctx context.Context, id string, body io.Reader) (model.Upload, error) {
	return u.a.Objects.UploadAppend(ctx, u.a.call(model.ActionUploadAppend), u.bucket, id, 0, body)
}

func (u *uploads) get(id string) (model.Upload, error) {
	return u.a.Objects.UploadGet(u.t.Context(), u.a.call(model.ActionUploadGet), u.bucket, id)
}

func (u *uploads) mustHave(key string, size int64) {
	u.t.Helper()
	o, err := u.a.Objects.ObjectGet(u.a.call(model.ActionObjectGet), u.bucket, key)
	if err != nil || o.SizeBytes != size {
		u.t.Errorf("%s: %d bytes, %v", key, o.SizeBytes, err)
	}
}

// mustHaveNoParts waits, because a part is removed after the record of its upload, maybe by the engine's own sweep.
func (u *uploads) mustHaveNoParts() {
	u.t.Helper()
	testenv.Within(u.t, time.Minute, "no parts", func() bool {
		parts, err := u.a.Core.Blobs.Parts()
		return err == nil && len(parts) == 0
	})
}

// An upload that a crash left with all its bytes but without its object gets the object when its client asks, who would
// take it for complete, and in the background.
func TestUploadIsCompletedAfterACrash(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	left := map[string]model.Upload{}
	for _, key := range []string{"asked for", "swept"} {
		left[key] = u.fill(key, "abc")
	}
	u.a.abandon(t)
	u.a = u.a.reopen(t)
	if got, err := u.get(left["asked for"].ID); err != nil || !got.Complete || got.Offset != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	u.mustHave("asked for", 3)
	testenv.Within(t, time.Minute, "the sweep", func() bool {
		if err := u.a.Objects.SweepUploads(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The appliance sweeps too: it removes the parts after the object exists.
		parts, _ := u.a.Core.Blobs.Parts()
		_, err := u.a.Objects.ObjectGet(u.a.call(model.ActionObjectGet), u.bucket, "swept")
		return err == nil && len(parts) == 0
	})
	for key, upload := range left {
		if got, err := u.get(upload.ID); err != nil || !got.Complete {
			t.Errorf("%s, asked again: %+v, %v", key, got, err)
		}
	}
}

// lastWords ends a body, and its request at the same time.
type lastWords struct {
	io.Reader
	gone context.CancelFunc
}

func (l *lastWords) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err == io.EOF {
		l.gone()
	}
	return n, err
}

// A client that disconnects after its last byte has sent everything.
func TestUploadOfAClientThatLeft(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	made := u.create("k", 3, false)
	ctx, gone := context.WithCancel(t.Context())
	if got, err := u.send(ctx, made.ID, &lastWords{strings.NewReader("abc"), gone}); err != nil || !got.Complete {
		t.Errorf("%+v, %v", got, err)
	}
	if ctx.Err() == nil {
		t.Fatal("the client stayed")
	}
	u.mustHave("k", 3)
}

// An upload that cannot become its object ends, and is not reported as complete.
func TestUploadRefusedAtItsEnd(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	made := u.create("k", 3, true)
	if err := u.a.put(u.bucket, "k", "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := u.send(t.Context(), made.ID, strings.NewReader("abc")); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("sent: %v", err)
	}
	if got, err := u.get(made.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("asked: %+v, %v", got, err)
	}
	u.mustHave("k", 5)
	u.mustHaveNoParts()
}

// A body longer than announced leaves the earlier bytes unchanged.
func TestUploadOfTooMuch(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	made := u.create("k", 3, false)
	if _, err := u.send(t.Context(), made.ID, strings.NewReader("abcd")); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("sent: %v", err)
	}
	if got, err := u.get(made.ID); err != nil || got.Complete || got.Offset != 0 {
		t.Errorf("asked: %+v, %v", got, err)
	}
}

// The number of unfinished uploads is limited.
func TestTooManyUploads(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	err := u.a.Core.Meta.Update(func(tx *meta.Tx) error {
		for n := range objects.MaxUploads - 1 {
			if err := tx.Uploads().Insert(model.Upload{ID: fmt.Sprintf("upl_%04d", n), Organization: u.a.org, Bucket: u.bucket, Length: 1, ExpiresAt: time.Now().Add(objects.UploadLife)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	last := u.create("k", 1, false)
	_, err = u.a.Objects.UploadCreate(t.Context(), u.a.call(model.ActionUploadCreate), objects.NewUpload{Bucket: u.bucket, Key: "one too many", Length: 1})
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "under way") {
		t.Errorf("%v", err)
	}
	if _, err := u.send(t.Context(), last.ID, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "room for another", func() bool {
		_, err := u.a.Objects.UploadCreate(t.Context(), u.a.call(model.ActionUploadCreate), objects.NewUpload{Bucket: u.bucket, Key: "another", Length: 1})
		return err == nil
	})
}

// One organization's requests about uploads never block another's databases.
func TestUploadClaims(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	release, err := u.a.Core.Claims.Take("db_of_another", "a restore")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := u.a.Objects.UploadDelete(u.a.call(model.ActionUploadDelete), u.bucket, "db_of_another"); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// Unfinished uploads into a bucket are removed with it, and their space is freed.
func TestUploadsOfADeletedBucket(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	made := u.create("k", 3, false)
	if _, err := u.a.Objects.BucketDelete(u.a.call(model.ActionBucketDelete), u.bucket, true); err != nil {
		t.Fatal(err)
	}
	if _, err := u.send(t.Context(), made.ID, strings.NewReader("a")); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("sent: %v", err)
	}
	if _, err := u.get(made.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("asked for: %v", err)
	}
	if err := u.a.Objects.SweepUploads(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.mustHaveNoParts()
	if usage, err := u.a.Insight.Usage(u.a.call(model.ActionUsageGet)); err != nil || usage.Uploads != 0 || usage.UploadBytes != 0 {
		t.Errorf("%+v, %v", usage.Totals, err)
	}
}

// A stop in the middle of completing an upload loses none of its bytes.
func TestUploadCompletedWhileStopping(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	made := u.fill("k", "abc")
	if err := u.a.Core.Blobs.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := u.a.Objects.CompleteUpload(t.Context(), u.a.call(model.ActionUploadGet), made); err == nil {
		t.Errorf("%+v", got)
	}
	u.a.abandon(t)
	u.a = u.a.reopen(t)
	if got, err := u.get(made.ID); err != nil || !got.Complete {
		t.Errorf("%+v, %v", got, err)
	}
	u.mustHave("k", 3)
}

// An upload that fails between its bytes and its record, for lack of space or because the appliance stops, keeps its
// bytes.
func TestUploadCutOffBeforeItsRecord(t *testing.T) {
	t.Parallel()
	u := newUploads(t)
	made := u.fill("k", "abc")
	release := u.a.Objects.LockObject(u.bucket, "k")
	ended := make(chan error, 1)
	go func() {
		_, err := u.a.Objects.CompleteUpload(context.Background(), u.a.call(model.ActionUploadGet), made)
		ended <- err
	}()
	testenv.Catch(t, time.Minute, "a file that waits for its record", func() bool {
		found := false
		err := u.a.Core.Blobs.Walk(func(blobstore.Ref, int64, time.Time) error {
			found = true
			return nil
		})
		return err == nil && found
	})
	if err := u.a.Core.Blobs.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-ended; err == nil {
		t.Fatal("it was completed")
	}
	u.a.abandon(t)
	u.a = u.a.reopen(t)
	if got, err := u.get(made.ID); err != nil || !got.Complete {
		t.Errorf("%+v, %v", got, err)
	}
	u.mustHave("k", 3)
	u.mustHaveNoParts()
}
