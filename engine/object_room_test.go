package engine

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// Uploads stop before the disk is full, in words; what gives room back goes on.
func TestUploadsLeaveRoom(t *testing.T) {
	t.Parallel()
	const total = 200 << 20
	s := openObjects(t)
	bucket := s.bucket(t, "files")
	s.mustPut(t, bucket, "first", "first")
	free := func(above int64) {
		s.Objects.Room.Measure = func(string) (int64, int64, error) { return total, objects.UploadReserve(total) + above, nil }
		s.Objects.Room.Last.Store(nil)
	}
	refused := func(what string, err error) {
		t.Helper()
		if model.CodeOf(err) != model.CodeForbidden || !strings.Contains(model.PublicMessage(err), core.DiskFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	free(1 << 20)
	s.mustPut(t, bucket, "second", "second")
	_, err := s.Objects.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), objects.NewUpload{Bucket: bucket, Key: "large", Length: 2 << 20})
	refused("a resumable upload that is too large", err)
	u, err := s.Objects.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), objects.NewUpload{Bucket: bucket, Key: "resumed", Length: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}

	free(0)
	refused("an upload", s.put(bucket, "third", "third"))
	_, err = s.Objects.UploadAppend(t.Context(), s.call(model.ActionUploadAppend), bucket, u.ID, 0, strings.NewReader("x"))
	refused("more of a resumable one", err)
	if err := s.delete(bucket, "first"); err != nil {
		t.Error(err)
	}

	free(1 << 20) // it fills up while an upload comes in, of which nobody knows the length
	body := io.MultiReader(strings.NewReader("x"), readerFunc(func([]byte) (int, error) { free(0); return 0, io.EOF }), strings.NewReader("y"))
	_, err = s.Objects.ObjectUpload(t.Context(), s.call(model.ActionObjectUpload), objects.Upload{Bucket: bucket, Key: "fourth", Body: body, Length: -1})
	refused("one under way", err)

	free(objects.EndlessMargin + 1<<20) // one without end leaves room for what has one
	endless := io.MultiReader(strings.NewReader(text(objects.EndlessMargin)), readerFunc(func([]byte) (int, error) { free(objects.EndlessMargin - 1); return 0, io.EOF }), strings.NewReader("y"))
	_, err = s.Objects.ObjectUpload(t.Context(), s.call(model.ActionObjectUpload), objects.Upload{Bucket: bucket, Key: "fifth", Body: endless, Length: -1})
	refused("one without end", err)
	s.mustPut(t, bucket, "second", "second")
	if got := fmt.Sprint(s.content(t, bucket)); got != "map[second:second]" {
		t.Errorf("there are %s", got)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func BenchmarkUploadRoom(b *testing.B) {
	r := objects.NewUploadRoom(b.TempDir())
	for b.Loop() {
		_ = r.Refuse(1 << 10)
	}
}
