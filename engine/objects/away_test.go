package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// sendAway takes the bytes of an object from the disk and lists them as away.
func sendAway(t testing.TB, s *store, sent ...model.Object) {
	t.Helper()
	s.close(t)
	dir := filepath.Join(t.TempDir(), "blobs")
	r, err := blobstore.NewRestorer(dir)
	for _, o := range sent {
		if err == nil {
			err = r.Away(blobstore.Away{Ref: blobstore.Ref(o.Blob), Size: o.SizeBytes, Location: []byte("there")})
		}
	}
	if err == nil {
		err = r.Finish()
	}
	if err == nil {
		away := filepath.Join(blobDirectory(s.core), "away")
		err = errors.Join(os.Remove(away), os.Rename(filepath.Join(dir, "away"), away))
	}
	for _, o := range sent {
		if removeErr := removeBytes(s, o); !errors.Is(removeErr, os.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// removeBytes removes the file of a large object.
func removeBytes(s *store, o model.Object) error {
	directory, id, _ := strings.Cut(o.Blob, "-")
	return os.Remove(filepath.Join(blobDirectory(s.core), "blobs", directory, id))
}

// TestAway: bytes that are elsewhere are fetched for a download, and no damage until then.
func TestAway(t *testing.T) {
	s := openStore(t)
	bucket, content := s.bucket(t, "photos"), strings.Repeat("large ", 20_000)
	s.mustPut(t, bucket, "large", content)
	object, err := s.object(bucket, "large")
	if err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, object)
	s.open(t)

	whole, err := s.scrubObject(t.Context(), rate.NewLimiter(rate.Inf, scrubStep), object, false)
	if !whole || err != nil {
		t.Errorf("a scrub takes what is away for damaged: %v, %v", whole, err)
	}
	_, err = s.get(bucket, "large")
	if !errors.Is(err, ErrAway) || !strings.Contains(model.PublicMessage(err), "holdfast offsite status") {
		t.Errorf("without a copy to fetch from: %v", err)
	}
	fetches := map[string]error{
		"try again later":                    errors.New("unreachable"),
		"the off-site copy elsewhere, which": fmt.Errorf("open: %w", &OtherCopyError{Repository: "elsewhere"}),
	}
	for want, failure := range fetches {
		s.FetchWith(func(context.Context, blobstore.Away, int64, int64) (io.ReadCloser, error) { return nil, failure })
		if _, err := s.get(bucket, "large"); !errors.Is(err, ErrAway) || !strings.Contains(model.PublicMessage(err), want) {
			t.Errorf("%v: %v", failure, err)
		}
	}
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		found, err := DamagedObjects(tx, s.org)
		if len(found) > 0 {
			t.Errorf("damaged: %v", found)
		}
		return err
	}); err != nil {
		t.Error(err)
	}

	s.FetchWith(func(_ context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
		if string(a.Location) != "there" {
			t.Errorf("fetched from %q", a.Location)
		}
		return io.NopCloser(strings.NewReader(content[from : from+n])), nil
	})
	measure := s.space.measure
	s.space.measure = func(string) (int64, int64, error) { return 1 << 40, 0, nil }
	s.space.last.Store(nil)
	if got, err := s.get(bucket, "large"); err != nil || got != content || !s.core.Blobs.IsAway(blobstore.Ref(object.Blob)) {
		t.Errorf("on a full disk: %d bytes, %v", len(got), err)
	}
	s.space.measure = measure
	s.space.last.Store(nil)
	if got, err := s.get(bucket, "large"); err != nil || got != content {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s.FetchWith(nil)
	if got, err := s.get(bucket, "large"); err != nil || got != content {
		t.Errorf("the second time %d bytes, %v", len(got), err)
	}
}

// TestLostInTheCopy: bytes that the copy has lost, which had the only ones, are damage that is reported once, until they can be
// read again.
func TestLostInTheCopy(t *testing.T) {
	s := openStore(t)
	bucket, content := s.bucket(t, "photos"), strings.Repeat("large ", 20_000)
	s.mustPut(t, bucket, "large", content)
	s.mustPut(t, bucket, "other", content)
	object, err := s.object(bucket, "large")
	other, otherErr := s.object(bucket, "other")
	if err := errors.Join(err, otherErr); err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, object, other)
	s.open(t)
	var failure error = blobstore.ErrDamaged
	s.FetchWith(func(_ context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
		if failure != nil && a.Ref == blobstore.Ref(object.Blob) {
			return nil, failure
		}
		return io.NopCloser(strings.NewReader(content[from : from+n])), nil
	})
	check := func(when string, most int) {
		t.Helper()
		found, err := s.damageAdvice()
		if err != nil || len(found) != most {
			t.Fatalf("%s: %+v, %v", when, found, err)
		}
		if most > 0 && (found[0].Resource.Name != "large" || !strings.Contains(found[0].Message, "off-site copy only")) {
			t.Errorf("%s: %+v", when, found[0])
		}
	}
	for range 3 {
		if _, err := s.get(bucket, "large"); !errors.Is(err, ErrAway) || !strings.Contains(model.PublicMessage(err), "damaged or missing") {
			t.Errorf("of the lost object: %v", err)
		}
	}
	check("after downloads", 1)
	if got, err := s.get(bucket, "other"); err != nil || got != content {
		t.Errorf("of another object: %d bytes, %v", len(got), err)
	}
	for _, again := range []struct {
		failure error
		most    int
	}{{blobstore.ErrDamaged, 1}, {errors.New("unreachable"), 1}, {nil, 0}} {
		failure = again.failure
		if err := s.scrubOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("after a scrub with %v", failure), again.most)
	}
}

// TestDamagedHere: an object that is damaged on this disk is read from the copy, which takes its place. While the copy does not
// answer, and once it is lost, the bytes here stay; then the object is reported as damaged, until the copy has it again.
func TestDamagedHere(t *testing.T) {
	s := openStore(t)
	bucket, content := s.bucket(t, "photos"), strings.Repeat("large ", 100_000)
	s.mustPut(t, bucket, "large", content)
	object, err := s.object(bucket, "large")
	if err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, object)
	s.open(t)
	var failure error
	s.FetchWith(func(_ context.Context, _ blobstore.Away, from, n int64) (io.ReadCloser, error) {
		if failure != nil {
			return nil, failure
		}
		return io.NopCloser(strings.NewReader(content[from : from+n])), nil
	})
	get := func(when string, want error) {
		t.Helper()
		got, err := s.get(bucket, "large")
		if !errors.Is(err, want) || err == nil && got != content {
			t.Errorf("%s: %d bytes, %v", when, len(got), err)
		}
		if s.core.Blobs.IsAway(blobstore.Ref(object.Blob)) {
			t.Errorf("%s: the bytes here are gone", when)
		}
	}
	reported := func(when string, want int) {
		t.Helper()
		if found, err := s.damageAdvice(); err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", when, found, err)
		}
	}
	if err := s.core.Blobs.Fetch(t.Context(), blobstore.Ref(object.Blob)); err != nil {
		t.Fatal(err)
	}
	s.flip(t, content)
	get("damaged here", ErrAway)
	get("read from the copy", nil)
	failure = errors.New("unreachable")
	get("in its place", nil)
	s.flip(t, content)
	for range 4 {
		get("the copy does not answer", ErrAway)
	}
	reported("the copy does not answer", 0)
	failure = blobstore.ErrDamaged
	get("damaged here and there", blobstore.ErrDamaged)
	reported("damaged here and there", 1)
	get("the second time", blobstore.ErrDamaged)
	for want := 1; want >= 0; want-- {
		if err := s.scrubOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		reported("after a scrub", want)
		failure = nil
	}
	failure = errors.New("unreachable")
	get("fetched by a scrub", nil)
	s.FetchWith(nil)
	s.flip(t, content)
	get("without a copy", blobstore.ErrDamaged)
	reported("without a copy", 1)
}

// TestHeadOfAway: what is only about an object does not fetch its bytes.
func TestHeadOfAway(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "photos")
	s.mustPut(t, bucket, "large", strings.Repeat("large ", 20_000))
	object, err := s.object(bucket, "large")
	if err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, object)
	s.open(t)
	s.FetchWith(func(context.Context, blobstore.Away, int64, int64) (io.ReadCloser, error) {
		t.Error("the bytes are fetched")
		return nil, blobstore.ErrDamaged
	})
	view, err := s.ObjectGet(s.call(model.ActionObjectGet), bucket, "large")
	if err != nil {
		t.Fatal(err)
	}
	call := &model.Call{Operation: model.Operation{Action: model.ActionObjectDownload}, Actor: model.Anybody()}
	got, err := s.ObjectDownloadHead(call, bucket, "large", view.DownloadPath)
	if err != nil || got.Public || got.SizeBytes != object.SizeBytes || got.Version != object.Version {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.ObjectDownloadHead(call, bucket, "large", view.DownloadPath+"0"); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("with another signature: %v", err)
	}
}
