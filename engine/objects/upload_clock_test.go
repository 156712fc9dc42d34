package objects

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
)

// Uploads that begin or get bytes while the clock is years behind are kept once it is right, and one that got bytes while it
// was ahead, or began then, is not kept for longer than others.
func TestUploadsWhileClockIsWrong(t *testing.T) {
	t.Parallel()
	const years = 10 * 365 * 24 * time.Hour
	s := openStore(t)
	bucket := s.bucket(t, "files")
	resumable := func() string {
		t.Helper()
		u, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: "resumable", Length: 10})
		if err != nil {
			t.Fatal(err)
		}
		return u.ID
	}
	part := func(id string) {
		t.Helper()
		if _, err := s.MultipartPut(t.Context(), s.call(model.ActionUploadAppend), PartUpload{
			Bucket: bucket, Key: "k", Multipart: id, Number: 1, Body: strings.NewReader("part"), Length: 4, Describe: func(*model.MultipartPart) {},
		}); err != nil {
			t.Fatal(err)
		}
	}
	send := func(id, bytes string) {
		t.Helper()
		u, err := s.upload(s.call(model.ActionUploadAppend), bucket, id)
		if err == nil {
			_, err = s.UploadAppend(t.Context(), s.call(model.ActionUploadAppend), bucket, id, u.Offset, strings.NewReader(bytes))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	multipart := startMultipart(t, s, bucket).id
	before := resumable()
	s.now.Store(-int64(years))
	part(multipart)
	send(before, "12345")
	begun, during := startMultipart(t, s, bucket).id, resumable()
	s.now.Store(0)
	if err := s.SweepUploads(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := func(want bool, multiparts, uploads []string) {
		t.Helper()
		for _, id := range multiparts {
			if _, err := s.MultipartGet(s.call(model.ActionUploadGet), bucket, "k", id); (err == nil) != want {
				t.Errorf("the multipart upload: %v; want it kept: %t", err, want)
			}
		}
		for _, id := range uploads {
			if _, err := s.upload(s.call(model.ActionUploadGet), bucket, id); (err == nil) != want {
				t.Errorf("the resumable upload: %v; want it kept: %t", err, want)
			}
		}
	}
	kept(true, []string{multipart, begun}, []string{before, during})

	s.now.Store(int64(years))
	part(multipart)
	send(before, "6")
	idleParts, idle := startMultipart(t, s, bucket).id, resumable()
	s.now.Store(0)
	part(multipart)
	send(before, "7")
	if err := s.SweepUploads(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept(true, []string{multipart, begun, idleParts}, []string{before, during, idle})
	s.now.Store(int64(MultipartLife + time.Minute))
	s.believe()
	if err := s.SweepUploads(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept(false, []string{multipart, begun, idleParts}, []string{before, during, idle})
}
