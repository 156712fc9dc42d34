package api

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"holdfast/server/api/wire"
)

// versioned returns a bucket that keeps versions.
func (w *world) versioned(t *testing.T, name string) wire.Bucket {
	t.Helper()
	b := w.bucket(t, name)
	return get[wire.Bucket](t, w.do(t, request{method: "PATCH", path: "/buckets/" + b.ID, key: w.org.full, body: `{"versioning":"enabled"}`}))
}

// TestObjectProperties stores metadata, tags and headers with an object, changes them, and copies them.
func TestObjectProperties(t *testing.T) {
	t.Parallel()
	w := open(t)
	bucket := w.bucket(t, "files")
	path := "/buckets/" + bucket.ID + "/objects"
	upload := request{method: "POST", path: path + "?key=k", key: w.org.full, body: "bytes", contentType: "text/plain", header: map[string]string{
		"X-Object-Meta-Owner": "ann", "X-Object-Tags": "team=blue&stage=a%20b", "Cache-Control": "max-age=60", "Content-Disposition": `attachment; filename="x.txt"`,
	}}
	check := func(o wire.Object, owner, stage string) {
		t.Helper()
		if o.Metadata["owner"] != owner || len(o.Metadata) != 1 || !maps.Equal(o.Tags, map[string]string{"team": "blue", "stage": stage}) ||
			text(o.CacheControl) != "max-age=60" || !strings.Contains(text(o.Disposition), "x.txt") || o.VersionID != "null" || o.LegalHold || o.Retention != nil {
			t.Errorf("the object is %+v", o)
		}
	}
	o := get[wire.Object](t, w.do(t, upload))
	check(o, "ann", "a b")
	o = get[wire.Object](t, w.do(t, request{method: "PATCH", path: path + "/k", key: w.org.full, body: `{"metadata":{"owner":"bob"},"tags":{"team":"blue","stage":"b"},"content_type":"text/html"}`}))
	check(o, "bob", "b")
	copied := get[wire.Object](t, w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/copy-object", key: w.org.full, body: `{"key":"a/b","source_key":"k"}`}))
	check(copied, "bob", "b")
	if copied.Key != "a/b" || copied.ContentType != "text/html" || copied.SizeBytes != 5 || copied.ChecksumCRC32C != o.ChecksumCRC32C {
		t.Errorf("the copy is %+v", copied)
	}
	for what, in := range map[string]request{
		"a tag twice":      {method: "POST", path: path + "?key=x", body: "x", header: map[string]string{"X-Object-Tags": "a=1&a=2"}},
		"long metadata":    {method: "POST", path: path + "?key=x", body: "x", header: map[string]string{"X-Object-Meta-A": strings.Repeat("x", 2049)}},
		"a name":           {method: "PATCH", path: path + "/k", body: `{"metadata":{"Owner":"x"}}`},
		"eleven tags":      {method: "PATCH", path: path + "/k", body: `{"tags":{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"","11":""}}`},
		"a control":        {method: "PATCH", path: path + "/k", body: `{"cache_control":"a\nb"}`},
		"no media type":    {method: "PATCH", path: path + "/k", body: `{"content_type":"text"}`},
		"two dispositions": {method: "PATCH", path: path + "/k", body: `{"content_disposition":1}`},
	} {
		in.key = w.org.full
		if got := w.do(t, in); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	if got := w.do(t, request{method: "PATCH", path: path + "/k", key: w.org.read, body: `{"tags":{}}`}); got.status != http.StatusForbidden {
		t.Errorf("by a key that may only read: %d %s", got.status, got.text)
	}
}

// TestVersions lists the versions of an object, reads one, brings it back, and removes it.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := open(t)
	bucket := w.versioned(t, "files")
	if bucket.Versioning != wire.VersioningEnabled || bucket.ObjectLock != nil {
		t.Fatalf("the bucket is %+v", bucket)
	}
	path := "/buckets/" + bucket.ID
	one, two := w.put(t, bucket.ID, "k", "one"), w.put(t, bucket.ID, "k", "other")
	w.put(t, bucket.ID, "a", "x")
	do := func(method, at, body string) reply {
		t.Helper()
		return w.do(t, request{method: method, path: path + at, key: w.org.full, body: body})
	}
	if got := do("DELETE", "/objects/k", ""); got.status != 200 {
		t.Fatal(got.text)
	}
	list := func() (ids []string, markers int) {
		t.Helper()
		for cursor := ""; ; {
			got := do("GET", "/versions?prefix=k&limit=1"+cursor, "")
			for _, v := range get[[]wire.ObjectVersion](t, got) {
				if v.Latest != (len(ids) == 0) || v.Key != "k" || (v.NoncurrentAt == nil) != v.Latest {
					t.Errorf("version %d is %+v", len(ids), v)
				}
				if v.DeleteMarker {
					markers++
				}
				ids = append(ids, v.VersionID)
			}
			if got.next == nil {
				return ids, markers
			}
			cursor = "&cursor=" + *got.next
		}
	}
	ids, markers := list()
	if len(ids) != 3 || markers != 1 || ids[1] != two.VersionID || ids[2] != one.VersionID {
		t.Fatalf("the versions are %v, %d markers", ids, markers)
	}
	for at, want := range map[string]int{"": 404, "?version_id=" + ids[0]: 404, "?version_id=none": 404, "?version_id=" + one.VersionID: 200} {
		if got := do("GET", "/objects/k"+at, ""); got.status != want {
			t.Errorf("GET %s: %d %s", at, got.status, got.text)
		}
	}
	if o := get[wire.Object](t, do("GET", "/objects/k?version_id="+one.VersionID, "")); o.SizeBytes != 3 || o.VersionID != one.VersionID || !strings.Contains(text(o.DownloadURL), "version_id="+one.VersionID) {
		t.Errorf("the first version is %+v", o)
	}
	back := get[wire.Object](t, do("POST", "/copy-object", `{"key":"k","source_key":"k","source_version_id":"`+one.VersionID+`"}`))
	if o := get[wire.Object](t, do("GET", "/objects/k", "")); o.VersionID != back.VersionID || o.SizeBytes != 3 {
		t.Errorf("brought back as %+v, and now %+v", back, o)
	}
	if got := do("DELETE", "/objects/k?version_id="+two.VersionID, ""); got.status != 200 {
		t.Error(got.text)
	}
	if got := do("DELETE", "/objects?key=k&version_id="+ids[0], ""); got.status != 200 {
		t.Error(got.text)
	}
	if ids, markers := list(); len(ids) != 2 || markers != 0 {
		t.Errorf("the versions are %v, %d markers", ids, markers)
	}
	if got := do("PATCH", "", `{"versioning":"off"}`); got.status != 422 {
		t.Errorf("versioning off: %d %s", got.status, got.text)
	}
	if b := get[wire.Bucket](t, do("PATCH", "", `{"versioning":"suspended"}`)); b.Versioning != wire.VersioningSuspended || b.NoncurrentCount != 1 || b.ObjectCount != 3 {
		t.Errorf("the bucket is %+v", b)
	}
}

// TestCORSOfBuckets sets rules and refuses what no rule can say.
func TestCORSOfBuckets(t *testing.T) {
	t.Parallel()
	w := open(t)
	bucket := w.bucket(t, "files")
	set := func(body string) reply {
		return w.do(t, request{method: "PATCH", path: "/buckets/" + bucket.ID, key: w.org.full, body: body})
	}
	b := get[wire.Bucket](t, set(`{"cors":[{"origins":["https://app.example.com"],"methods":["PUT","GET"],"headers":["*"],"expose_headers":["ETag"],"max_age_seconds":60}]}`))
	if len(b.CORS) != 1 || b.CORS[0].Origins[0] != "https://app.example.com" || b.CORS[0].Methods[1] != wire.CORSGet || *b.CORS[0].MaxAgeSeconds != 60 {
		t.Errorf("the rules are %+v", b.CORS)
	}
	for _, body := range []string{
		`{"cors":[{}]}`, `{"cors":[{"origins":[],"methods":["GET"]}]}`, `{"cors":[{"origins":["*"],"methods":["OPTIONS"]}]}`,
		`{"cors":[{"origins":["*.*"],"methods":["GET"]}]}`, `{"cors":[{"origins":["https://a\r\nX: y"],"methods":["GET"]}]}`, `{"cors":[{"origins":["*"],"methods":["GET"],"headers":["a b"]}]}`,
	} {
		if got := set(body); got.status != 422 {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
	if b := get[wire.Bucket](t, set(`{"public":true}`)); len(b.CORS) != 1 {
		t.Error("the rules went with another change")
	}
	if b := get[wire.Bucket](t, set(`{"cors":[]}`)); len(b.CORS) != 0 {
		t.Errorf("the rules are still %+v", b.CORS)
	}
}
