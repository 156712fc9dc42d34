package s3

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"holdfast/engine/objects"
)

// TestTooManyParts: a completion that names more parts than an upload can have is refused with the first one too many,
// and not even decoded if there is no such upload.
func TestTooManyParts(t *testing.T) {
	t.Parallel()
	document := "<CompleteMultipartUpload>" + strings.Repeat("<Part/>", 160_000) + "</CompleteMultipartUpload>"
	var parts completion
	if err := xml.Unmarshal([]byte(document), &parts); err == nil || len(parts.Parts) > objects.MaxParts {
		t.Errorf("%d parts, %v", len(parts.Parts), err)
	}
	w := open(t)
	w.bucketWith(t, w.minio(t, w.org.full), "photos")
	core := minio.Core{Client: w.minio(t, w.org.full)}
	id, err := core.NewMultipartUpload(t.Context(), "photos", "k", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for upload, want := range map[string]string{id: "MalformedXML", "absent": "NoSuchUpload"} {
		if _, code, text := w.ask(t, w.org.full, "POST", "/photos/k?uploadId="+upload, document, nil); code != want {
			t.Errorf("upload %s: %s %s", upload, code, text)
		}
	}
	keys := "<Delete>" + strings.Repeat("<Object/>", 100_000) + "</Delete>"
	if _, code, text := w.ask(t, w.org.full, "POST", "/photos?delete", keys, nil); code != "MalformedXML" {
		t.Errorf("deletion: %s %s", code, text)
	}
}
