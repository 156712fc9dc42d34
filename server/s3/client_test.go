package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	minioc "github.com/minio/minio-go/v7/pkg/credentials"

	"holdfast/engine/core"
	"holdfast/engine/objects"
	"holdfast/internal/testenv"
)

func (w *world) minio(t testing.TB, c credentials) *minio.Client {
	t.Helper()
	client, err := minio.New(strings.TrimPrefix(w.server.URL, "http://"), &minio.Options{
		Creds: minioc.NewStaticV4(c.id, c.secret, ""), TrailingHeaders: true, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func random(seed uint64, n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(data)
	return data
}

// TestMinio uses the endpoint with minio-go, which signs its chunks on plain HTTP.
func TestMinio(t *testing.T) {
	t.Parallel()
	w := open(t)
	c, ctx := w.minio(t, w.org.full), context.Background()
	if err := c.MakeBucket(ctx, "photos", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 1 << 10, 100 << 10, 6 << 20, 17 << 20} {
		data, key := random(1, size), fmt.Sprintf("a b/%d+ü", size)
		info, err := c.PutObject(ctx, "photos", key, bytes.NewReader(data), int64(size), minio.PutObjectOptions{
			ContentType: "image/png", UserMetadata: map[string]string{"Owner": "Ann"}, CacheControl: "no-store", PartSize: 5 << 20,
		})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if want := fmt.Sprintf("%x", md5.Sum(data)); size <= 5<<20 && info.ETag != want {
			t.Errorf("the ETag of %d bytes is %s, want %s", size, info.ETag, want)
		} else if size > 5<<20 && !strings.HasSuffix(info.ETag, fmt.Sprintf("-%d", (size+(5<<20)-1)/(5<<20))) {
			t.Errorf("the ETag of %d bytes is %s", size, info.ETag)
		}
		object, err := c.GetObject(ctx, "photos", key, minio.GetObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(object); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %d of %d bytes: %v", len(got), size, err)
		}
		stat, err := c.StatObject(ctx, "photos", key, minio.StatObjectOptions{})
		if err != nil || stat.Size != int64(size) || stat.ContentType != "image/png" || stat.UserMetadata["Owner"] != "Ann" ||
			stat.Metadata.Get("Cache-Control") != "no-store" || stat.ETag != info.ETag {
			t.Errorf("stat: %+v, %v", stat, err)
		}
	}
	var keys []string
	for o := range c.ListObjects(ctx, "photos", minio.ListObjectsOptions{Recursive: true, Prefix: "a b/"}) {
		keys = append(keys, o.Key)
	}
	if len(keys) != 6 {
		t.Errorf("listed %q", keys)
	}
	presigned, err := c.PresignedGetObject(ctx, "photos", "a b/1024+ü", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(presigned.String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, _ := io.ReadAll(res.Body); res.StatusCode != 200 || len(got) != 1024 {
		t.Errorf("presigned: %s, %d bytes: %s", res.Status, len(got), got)
	}
	for _, source := range []minio.CopySrcOptions{{Bucket: "nothing", Object: "a"}, {Bucket: "photos", Object: "nothing"}} {
		_, err := c.CopyObject(ctx, minio.CopyDestOptions{Bucket: "photos", Object: "copy"}, source)
		if refused := minio.ToErrorResponse(err); refused.StatusCode != 404 || refused.Key != "nothing" && refused.BucketName != "nothing" {
			t.Errorf("a copy of %s/%s: %+v", source.Bucket, source.Object, refused)
		}
	}
	if _, err := c.CopyObject(ctx, minio.CopyDestOptions{Bucket: "photos", Object: "copy"}, minio.CopySrcOptions{Bucket: "photos", Object: "a b/1024+ü"}); err != nil {
		t.Errorf("copy: %v", err)
	}
	for e := range c.RemoveObjects(ctx, "photos", c.ListObjects(ctx, "photos", minio.ListObjectsOptions{Recursive: true}), minio.RemoveObjectsOptions{}) {
		t.Errorf("remove %s: %v", e.ObjectName, e.Err)
	}
	if err := c.RemoveBucket(ctx, "photos"); err != nil {
		t.Error(err)
	}
}

// sha256Hasher is the hash that minio-go's signer needs.
type sha256Hasher struct{ hash.Hash }

// Close implements md5simd.Hasher.
func (sha256Hasher) Close() {}

func newSHA256() sha256Hasher { return sha256Hasher{sha256.New()} }

// TestList pages through a bucket by both versions of the list, with and without folders.
func TestList(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ask(t, w.org.full, "PUT", "/photos", "", nil)
	want := []string{"a", "b/1", "b/2", "b/c/3", "d", "d/1", "e&<>", "f g"}
	for _, key := range want {
		if status, code, _ := w.ask(t, w.org.full, "PUT", "/photos/"+url.PathEscape(key), key, nil); status != 200 {
			t.Fatal(key, status, code)
		}
	}
	client := minio.Core{Client: w.minio(t, w.org.full)}
	for limit := 1; limit <= len(want)+1; limit++ {
		var v1, v2, folders []string
		for marker := ""; ; {
			page, err := client.ListObjects("photos", "", marker, "", limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Contents {
				v1, marker = append(v1, o.Key), o.Key
			}
			if !page.IsTruncated {
				break
			}
		}
		for token := ""; ; {
			page, err := client.ListObjectsV2("photos", "", "", token, "", limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Contents {
				v2 = append(v2, o.Key)
			}
			if token = page.NextContinuationToken; !page.IsTruncated {
				break
			}
		}
		for token := ""; ; {
			page, err := client.ListObjectsV2("photos", "", "", token, "/", limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Contents {
				folders = append(folders, o.Key)
			}
			for _, p := range page.CommonPrefixes {
				folders = append(folders, p.Prefix)
			}
			if token = page.NextContinuationToken; !page.IsTruncated {
				break
			}
		}
		slices.Sort(folders)
		if !slices.Equal(v1, want) || !slices.Equal(v2, want) || !slices.Equal(folders, []string{"a", "b/", "d", "d/", "e&<>", "f g"}) {
			t.Errorf("by %d: %q, %q, %q", limit, v1, v2, folders)
		}
	}
	if page, err := client.ListObjectsV2("photos", "b/", "b/1", "", "", 10); err != nil || len(page.Contents) != 2 {
		t.Errorf("after b/1: %+v, %v", page.Contents, err)
	}
}

// TestMultipart covers what clients rarely do: replaced, missing and small parts, copies, lists, and completing twice.
func TestMultipart(t *testing.T) {
	t.Parallel()
	w := open(t)
	client, ctx := minio.Core{Client: w.minio(t, w.org.full)}, context.Background()
	w.ask(t, w.org.full, "PUT", "/photos", "", nil)
	id, err := client.NewMultipartUpload(ctx, "photos", "big", minio.PutObjectOptions{ContentType: "image/png"})
	if err != nil {
		t.Fatal(err)
	}
	part := func(number int, data []byte) minio.CompletePart {
		t.Helper()
		p, err := client.PutObjectPart(ctx, "photos", "big", id, number, bytes.NewReader(data), int64(len(data)), minio.PutObjectPartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return minio.CompletePart{PartNumber: number, ETag: p.ETag}
	}
	old, one, last := part(1, random(1, 100)), part(1, random(2, 5<<20)), part(7, random(3, 1000))
	if _, err := client.PutObject(ctx, "photos", "source", bytes.NewReader(random(4, 2000)), 2000, "", "", minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	copied, err := client.CopyObjectPart(ctx, "photos", "source", "photos", "big", id, 9, 500, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := client.ListObjectParts(ctx, "photos", "big", id, 1, 1)
	if err != nil || len(parts.ObjectParts) != 1 || parts.ObjectParts[0].PartNumber != 7 || !parts.IsTruncated {
		t.Errorf("the second part: %+v, %v", parts, err)
	}
	complete := func(key string, parts ...minio.CompletePart) (minio.UploadInfo, string) {
		info, err := client.CompleteMultipartUpload(ctx, "photos", key, id, parts, minio.PutObjectOptions{})
		return info, minio.ToErrorResponse(err).Code
	}
	for name, c := range map[string]struct {
		want, key string
		parts     []minio.CompletePart
	}{
		"under another key": {"NoSuchUpload", "other", []minio.CompletePart{one, last}},
		"out of order":      {"InvalidPartOrder", "big", []minio.CompletePart{last, one}},
		"a replaced part":   {"InvalidPart", "big", []minio.CompletePart{old, last}},
		"a missing part":    {"InvalidPart", "big", []minio.CompletePart{one, {PartNumber: 3, ETag: one.ETag}}},
		"a small part":      {"EntityTooSmall", "big", []minio.CompletePart{one, last, copied}},
	} {
		if _, got := complete(c.key, c.parts...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	first, code := complete("big", one, copied)
	if code != "" {
		t.Fatal(code)
	}
	if again, code := complete("big", one, copied); code != "" || again.ETag != first.ETag {
		t.Errorf("completed again: %s, %s", again.ETag, code)
	}
	got, _, _, err := client.GetObject(ctx, "photos", "big", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(got); err != nil || !bytes.Equal(data, append(random(2, 5<<20), random(4, 2000)[500:1500]...)) {
		t.Errorf("the object has %d other bytes: %v", len(data), err)
	}
	if list, err := client.ListMultipartUploads(ctx, "photos", "", "", "", "", 10); err != nil || len(list.Uploads) != 0 {
		t.Errorf("left over: %+v, %v", list.Uploads, err)
	}
	testenv.Eventually(t, "the removal of the parts", func() bool {
		left, err := os.ReadDir(filepath.Join(w.dir, "blobs", "parts"))
		return err == nil && len(left) == 0
	})
}

// TestForgottenMultipart checks that a sweep aborts uploads without a new part for too long.
func TestForgottenMultipart(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := open(t, func(c *core.Config) {
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	client, ctx := minio.Core{Client: w.minio(t, w.org.full)}, context.Background()
	w.ask(t, w.org.full, "PUT", "/photos", "", nil)
	id, err := client.NewMultipartUpload(ctx, "photos", "big", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutObjectPart(ctx, "photos", "big", id, 1, strings.NewReader("part"), 4, minio.PutObjectPartOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{objects.MultipartLife - time.Hour, objects.MultipartLife + time.Hour} {
		ahead.Store(int64(after))
		guard := &w.engine.Core.Guard // as of an appliance that has run for so long
		guard.Mu.Lock()
		guard.Believed.Time = w.engine.Core.WallClock()
		guard.Mu.Unlock()
		if err := w.engine.Objects.SweepUploads(ctx); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(filepath.Join(w.dir, "blobs", "parts"))
		if kept := after < objects.MultipartLife; err != nil || (len(left) == 1) != kept {
			t.Errorf("after %s: %d parts, %v", after, len(left), err)
		}
	}
}
