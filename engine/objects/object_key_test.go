package objects

import (
	"testing"

	"holdfast/engine/model"
)

// TestNewKeysFitIntoXML: nothing makes an object whose key a list of the S3 endpoint could not show.
func TestNewKeysFitIntoXML(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	s.mustPut(t, bucket, "k", "x")
	const key = "a\ufffeb"
	for name, do := range map[string]func() error{
		"upload": func() error { return s.put(bucket, key, "x") },
		"resumable": func() error {
			_, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: key, Length: 1})
			return err
		},
		"multipart": func() error {
			_, err := s.MultipartCreate(s.call(model.ActionUploadCreate), NewMultipart{Bucket: bucket, Key: key})
			return err
		},
		"copy": func() error {
			_, err := s.ObjectCopy(t.Context(), s.call(model.ActionObjectCopy), Copy{Source: VersionName{Bucket: bucket, Key: "k"}, Bucket: bucket, Key: key})
			return err
		},
	} {
		if err := do(); model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.delete(bucket, key); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("a deletion: %v", err)
	}
}
