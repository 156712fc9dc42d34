package s3

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"holdfast/engine/core"
)

// TestGetOfADamagedObject covers that clients see the error: a whole body that has its own length and none of the
// headers of the object, also where the range that was asked for is shorter than the error.
func TestGetOfADamagedObject(t *testing.T) {
	t.Parallel()
	w, ctx := open(t, func(c *core.Config) { c.Log = slog.New(slog.DiscardHandler) }), context.Background() // which has the damage
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	object := bytes.Repeat([]byte("damaged "), 100_000)
	if _, err := client.PutObject(ctx, "photos", "large", bytes.NewReader(object), int64(len(object)), minio.PutObjectOptions{
		ContentEncoding: "br", ContentLanguage: "de", CacheControl: "max-age=86400",
	}); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	if err := filepath.WalkDir(filepath.Join(w.dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, object[:100]) {
			return err
		}
		damaged++
		return os.WriteFile(path, bytes.Replace(text, []byte("damaged"), []byte("Damaged"), 1), 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	if damaged != 1 {
		t.Fatalf("%d files have the object", damaged)
	}
	for _, ranges := range []string{"", "bytes=0-99", "bytes=0-9999"} {
		options := minio.GetObjectOptions{}
		if ranges != "" {
			options.Set("Range", ranges)
		}
		_, _, _, err := (&minio.Core{Client: client}).GetObject(ctx, "photos", "large", options)
		if got := minio.ToErrorResponse(err); got.Code != "InternalError" || got.StatusCode != 500 {
			t.Errorf("%q: %v", ranges, err)
		}
		link, err := client.PresignedGetObject(ctx, "photos", "large", 1e11, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, text := w.anonymous(t, "GET", strings.TrimPrefix(link.String(), w.server.URL), map[string]string{"Range": ranges})
		for _, name := range []string{"Content-Encoding", "Content-Language", "Cache-Control", "Content-Range", "ETag"} {
			if value := res.Header.Get(name); value != "" {
				t.Errorf("%q: the error has %s %q", ranges, name, value)
			}
		}
		if res.StatusCode != 500 || res.ContentLength >= 0 && res.ContentLength != int64(len(text)) || !strings.HasSuffix(text, "</Error>") {
			t.Errorf("%q: %d with %d bytes: %s", ranges, res.StatusCode, res.ContentLength, text)
		}
	}
}
