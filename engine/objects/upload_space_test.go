package objects

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Uploads stop before the disk is full, with a clear error; operations that free space continue.
func TestUploadsLeaveRoom(t *testing.T) {
	t.Parallel()
	const total = 200 << 20
	s := openStore(t)
	bucket := s.bucket(t, "files")
	s.mustPut(t, bucket, "first", "first")
	free := func(above int64) {
		s.space.measure = func(string) (int64, int64, error) { return total, uploadReserve(total) + above, nil }
		s.space.last.Store(nil)
	}
	refused := func(what string, err error) {
		t.Helper()
		if model.CodeOf(err) != model.CodeForbidden || !strings.Contains(model.PublicMessage(err), core.DiskFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	free(1 << 20)
	s.mustPut(t, bucket, "second", "second")
	_, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: "large", Length: 2 << 20})
	refused("a resumable upload that is too large", err)
	u, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: "resumed", Length: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}

	free(0)
	refused("an upload", s.put(bucket, "third", "third"))
	_, err = s.UploadAppend(t.Context(), s.call(model.ActionUploadAppend), bucket, u.ID, 0, strings.NewReader("x"))
	refused("more of a resumable one", err)
	if err := s.delete(bucket, "first"); err != nil {
		t.Error(err)
	}

	free(1 << 20) // the disk fills up during an upload of unknown length
	body := io.MultiReader(strings.NewReader("x"), readerFunc(func([]byte) (int, error) { free(0); return 0, io.EOF }), strings.NewReader("y"))
	_, err = s.ObjectUpload(t.Context(), s.call(model.ActionObjectUpload), Upload{Bucket: bucket, Key: "fourth", Body: body, Length: -1})
	refused("one under way", err)

	free(unknownLengthMargin + 1<<20) // an upload of unknown length leaves space for one of known length
	endless := io.MultiReader(strings.NewReader(text(unknownLengthMargin)), readerFunc(func([]byte) (int, error) { free(unknownLengthMargin - 1); return 0, io.EOF }), strings.NewReader("y"))
	_, err = s.ObjectUpload(t.Context(), s.call(model.ActionObjectUpload), Upload{Bucket: bucket, Key: "fifth", Body: endless, Length: -1})
	refused("one without end", err)
	s.mustPut(t, bucket, "second", "second")
	if got := fmt.Sprint(s.content(t, bucket)); got != "map[second:second]" {
		t.Errorf("there are %s", got)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func BenchmarkUploadRoom(b *testing.B) {
	r := newUploadSpace(b.TempDir())
	for b.Loop() {
		_ = r.refuse(1 << 10)
	}
}
