package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"holdfast/engine/model"
)

// versionsOf lists the versions of a bucket: key, id, and whether it is the latest and a delete marker.
func versionsOf(t *testing.T, c *minio.Client, bucket string) (all []minio.ObjectInfo) {
	t.Helper()
	for o := range c.ListObjects(context.Background(), bucket, minio.ListObjectsOptions{WithVersions: true, Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		all = append(all, o)
	}
	return all
}

func contentOf(c *minio.Client, bucket, key, version string) (string, error) {
	o, err := c.GetObject(context.Background(), bucket, key, minio.GetObjectOptions{VersionID: version})
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(o)
	return string(content), err
}

// TestVersioning uses versions as minio-go does.
func TestVersioning(t *testing.T) {
	t.Parallel()
	w := open(t)
	c, ctx := w.minio(t, w.org.full), context.Background()
	if err := c.MakeBucket(ctx, "files", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	put := func(key, content string) string {
		t.Helper()
		info, err := c.PutObject(ctx, "files", key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return info.VersionID
	}
	if id := put("k", "before"); id != "" {
		t.Errorf("a bucket without versioning makes version %q", id)
	}
	if err := c.EnableVersioning(ctx, "files"); err != nil {
		t.Fatal(err)
	}
	if v, err := c.GetBucketVersioning(ctx, "files"); err != nil || !v.Enabled() {
		t.Errorf("versioning: %+v, %v", v, err)
	}
	one, two := put("k", "one"), put("k", "two")
	for id, want := range map[string]string{"": "two", one: "one", two: "two", model.NullVersion: "before"} {
		if got, err := contentOf(c, "files", "k", id); err != nil || got != want {
			t.Errorf("version %q is %q, %v, want %q", id, got, err, want)
		}
	}
	if stat, err := c.StatObject(ctx, "files", "k", minio.StatObjectOptions{VersionID: one}); err != nil || stat.Size != 3 || stat.VersionID != one {
		t.Errorf("stat: %+v, %v", stat, err)
	}
	if _, err := contentOf(c, "files", "k", strings.Repeat("0", 26)); minio.ToErrorResponse(err).Code != "NoSuchVersion" {
		t.Errorf("an unknown version: %v", err)
	}
	if _, err := contentOf(c, "files", "k", "x"); minio.ToErrorResponse(err).Code != "InvalidArgument" {
		t.Errorf("no version: %v", err)
	}
	if err := c.RemoveObject(ctx, "files", "k", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	stat, err := c.StatObject(ctx, "files", "k", minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).Code != "NoSuchKey" || !stat.IsDeleteMarker {
		t.Errorf("deleted: %+v, %v", stat, err)
	}
	all := versionsOf(t, c, "files")
	if len(all) != 4 || !all[0].IsDeleteMarker || !all[0].IsLatest || all[1].VersionID != two || all[1].IsLatest || all[3].VersionID != model.NullVersion {
		t.Fatalf("the versions are %+v", all)
	}
	if _, err := contentOf(c, "files", "k", all[0].VersionID); minio.ToErrorResponse(err).Code != "MethodNotAllowed" {
		t.Errorf("a delete marker: %v", err)
	}
	if err := c.RemoveBucket(ctx, "files"); minio.ToErrorResponse(err).Code != "BucketNotEmpty" {
		t.Errorf("a bucket with versions: %v", err)
	}
	if _, err := c.CopyObject(ctx, minio.CopyDestOptions{Bucket: "files", Object: "k"}, minio.CopySrcOptions{Bucket: "files", Object: "k", VersionID: one}); err != nil {
		t.Errorf("bring a version back: %v", err)
	}
	if got, err := contentOf(c, "files", "k", ""); err != nil || got != "one" {
		t.Errorf("it is %q, %v", got, err)
	}
	objects := make(chan minio.ObjectInfo, 10)
	for _, o := range versionsOf(t, c, "files") {
		objects <- o
	}
	close(objects)
	for e := range c.RemoveObjects(ctx, "files", objects, minio.RemoveObjectsOptions{}) {
		t.Errorf("remove %s: %v", e.VersionID, e.Err)
	}
	if err := c.RemoveBucket(ctx, "files"); err != nil {
		t.Error(err)
	}
}

// TestVersionPages lists versions page by page.
func TestVersionPages(t *testing.T) {
	t.Parallel()
	w := open(t)
	c, ctx := minio.Core{Client: w.minio(t, w.org.full)}, context.Background()
	w.ask(t, w.org.full, "PUT", "/photos", "", nil)
	if err := c.EnableVersioning(ctx, "photos"); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, key := range []string{"a", "b/1", "b/2", "c"} {
		var ids []string
		for i := range 3 {
			info, err := c.PutObject(ctx, "photos", key, bytes.NewReader([]byte{byte(i)}), 1, "", "", minio.PutObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, key+" "+info.VersionID)
		}
		slices.Reverse(ids)
		want = append(want, ids...)
	}
	for limit := 1; limit <= 13; limit++ {
		var got, level []string
		for query := fmt.Sprintf("max-keys=%d", limit); query != ""; {
			query = w.versionPage(t, query, &got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %q, want %q", limit, got, want)
		}
		for query := fmt.Sprintf("delimiter=%%2F&max-keys=%d", limit); query != ""; {
			query = w.versionPage(t, query, &level)
		}
		slices.Sort(level)
		if len(level) != 7 || !slices.Contains(level, "b/") {
			t.Errorf("a level by %d: %q", limit, level)
		}
	}
}

// versionPage adds a page of versions to a list and returns the query of the next page, "" at the end.
func (w *world) versionPage(t *testing.T, query string, got *[]string) (next string) {
	t.Helper()
	status, code, text := w.ask(t, w.org.full, "GET", "/photos?versions&"+query, "", nil)
	if status != http.StatusOK {
		t.Fatal(status, code)
	}
	var page struct {
		IsTruncated                        bool
		NextKeyMarker, NextVersionIdMarker string
		Version                            []struct{ Key, VersionId string }
		CommonPrefixes                     []struct{ Prefix string }
	}
	if err := xml.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	for _, v := range page.Version {
		*got = append(*got, v.Key+" "+v.VersionId)
	}
	for _, p := range page.CommonPrefixes {
		*got = append(*got, p.Prefix)
	}
	if !page.IsTruncated {
		return ""
	}
	markers := url.Values{"key-marker": {page.NextKeyMarker}}
	if page.NextVersionIdMarker != "" {
		markers.Set("version-id-marker", page.NextVersionIdMarker)
	}
	kept, _, _ := strings.Cut(query, "&key-marker")
	return kept + "&" + strings.ReplaceAll(markers.Encode(), "+", "%20")
}
