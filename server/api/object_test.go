package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
)

// put uploads an object under exactly this key.
func (w *world) put(tb testing.TB, bucket, key, body string) wire.Object {
	tb.Helper()
	return get[wire.Object](tb, w.do(tb, request{
		method: "POST", path: "/buckets/" + bucket + "/objects?key=" + url.QueryEscape(key), key: w.org.full, body: body,
	}))
}

// escapeAll writes every byte of a path as %XX.
func escapeAll(key string) string {
	var b strings.Builder
	for i := range len(key) {
		fmt.Fprintf(&b, "%%%02X", key[i])
	}
	return b.String()
}

// TestHostileKeys writes, reads and deletes objects whose keys routers tend to clean, in every spelling of the path.
func TestHostileKeys(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "hostile")
	keys := []string{
		"a", "a/", "a/b", "a//b", "/a", "//a", "/", "//", "a b", "a+b", "a%b", "a%2Fb", "a%252Fb", "%2e%2e", "?", "a?key=b", "#", "a;b", "a&b=c",
		"...", "a/...", "ü/ö", "u\u0308", "日本語/キー", "🙂", "objects", "objects/a", "restart", ":id", "*key", "{key}", "\\..\\a", "a\\b", "~", "'\"<>",
		strings.Repeat("k", 1024), strings.Repeat("k/", 512),
	}
	for _, key := range keys {
		if o := w.put(t, bucket.ID, key, key); o.Key != key {
			t.Errorf("uploaded %q as %q", key, o.Key)
		}
	}
	for _, key := range keys {
		for _, path := range []string{escapeAll(key), strings.ReplaceAll(url.PathEscape(key), "%2F", "/")} {
			o := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/" + path, key: w.org.full}))
			if o.Key != key || o.SizeBytes != int64(len(key)) {
				t.Errorf("%s is %q", path, o.Key)
			}
		}
	}
	left := len(keys)
	for i, key := range keys {
		in := request{method: "DELETE", path: "/buckets/" + bucket.ID + "/objects/" + escapeAll(key), key: w.org.full}
		if i%2 == 1 {
			in.path = "/buckets/" + bucket.ID + "/objects?key=" + url.QueryEscape(key)
		}
		if got := get[wire.DeletedObject](t, w.do(t, in)); got.Key != key || !got.Deleted {
			t.Errorf("deleted %+v, want %q", got, key)
		}
		left--
		if got := w.do(t, in); got.status != 404 {
			t.Errorf("%q is deleted twice: %d", key, got.status)
		}
		if n := w.buckets(t)[0].ObjectCount; n != int64(left) {
			t.Fatalf("%d objects are left after the delete of %q, want %d", n, key, left)
		}
	}
}

func (w *world) buckets(tb testing.TB) []wire.Bucket {
	tb.Helper()
	return get[[]wire.Bucket](tb, w.do(tb, request{method: "GET", path: "/buckets", key: w.org.full}))
}

// TestKeysThatCouldBeRewritten sends deletions that a cleaning router, proxy or client would turn into deletions of
// something else.
func TestKeysThatCouldBeRewritten(t *testing.T) {
	w := open(t)
	bucket, other := w.bucket(t, "bucket"), w.bucket(t, "other")
	w.put(t, bucket.ID, "a", "x")
	for _, path := range []string{
		"..%2F..%2Fbuckets%2F" + other.ID,
		"..%2F..%2F..%2Fbuckets%2F" + other.ID,
		"%2e%2e%2f%2e%2e%2f" + other.ID,
		"%2e%2e/%2e%2e/" + other.ID,
		"../../" + other.ID,
		"a/..", "a/../a", "./a", "a/.", "%2e", ".%2F", "..%2f", "a%2F%2E%2E", "a%00b", "%0a", "%7F", "%C2%85", "%ff", "a%c0%af", "",
		strings.Repeat("k", 1025),
	} {
		for _, method := range []string{"DELETE", "GET"} {
			got := w.do(t, request{method: method, path: "/buckets/" + bucket.ID + "/objects/" + path, key: w.org.full})
			if got.status != 422 || got.code != string(model.CodeValidation) {
				t.Errorf("%s …/objects/%s: %d %s", method, path, got.status, got.text)
			}
		}
	}
	if n := len(w.buckets(t)); n != 2 {
		t.Errorf("%d buckets are left", n)
	}
	for _, query := range []string{"", "?key=", "?key", "?key=a&key=a", "?key=a&KEY=a", "?key=a&key", "?key=a;b", "?key=%zz", "?%6bey=a&key=a", "?key=..", "?key=%00"} {
		got := w.do(t, request{method: "DELETE", path: "/buckets/" + bucket.ID + "/objects" + query, key: w.org.full})
		if got.status != 422 {
			t.Errorf("DELETE …/objects%s: %d %s", query, got.status, got.text)
		}
	}
	if n := w.buckets(t)[1].ObjectCount; n != 1 {
		t.Errorf("%d objects are left in the bucket", n)
	}
}

func TestObjectList(t *testing.T) {
	w := open(t)
	for _, test := range []struct{ order, want string }{{"", "a/3 a/2"}, {"&order=newest", "a/3 a/2"}, {"&order=key", "a/1 a/2 a/3"}} {
		bucket := w.bucket(t, "list"+strings.TrimPrefix(test.order, "&order="))
		for _, key := range []string{"a/1", "a/2", "b", "a/3"} {
			w.put(t, bucket.ID, key, "x")
		}
		var keys []string
		path := "/buckets/" + bucket.ID + "/objects?prefix=a%2F&limit=1" + test.order
		for cursor := ""; ; {
			got := w.do(t, request{method: "GET", path: path + cursor, key: w.org.read})
			for _, o := range get[[]wire.Object](t, got) {
				keys = append(keys, o.Key)
			}
			if got.next == nil {
				break
			}
			if cursor == "" { // an object that is on no page yet, in either order
				w.put(t, bucket.ID, map[bool]string{true: "a/3", false: "a/1"}[test.order == "&order=key"], "y")
			}
			cursor = "&cursor=" + url.QueryEscape(*got.next)
		}
		if got := strings.Join(keys, " "); got != test.want {
			t.Errorf("%s: keys %s", test.order, got)
		}
	}
	bucket := w.bucket(t, "level")
	for _, query := range []string{"order=newest&delimiter=/", "order=", "order=size"} {
		if got := w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects?" + query, key: w.org.read}); got.status != 422 || !strings.Contains(got.msg, "order") {
			t.Errorf("%s: %d %s", query, got.status, got.text)
		}
	}
}

func TestBucketDelete(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "full")
	w.put(t, bucket.ID, "a", "x")
	for _, test := range []struct {
		query  string
		status int
	}{{"", 409}, {"?force=false", 409}, {"?force=", 422}, {"?force=yes", 422}, {"?force=true&force=false", 422}, {"?force=true", 200}, {"", 404}} {
		got := w.do(t, request{method: "DELETE", path: "/buckets/" + bucket.ID + test.query, key: w.org.full})
		if got.status != test.status {
			t.Errorf("DELETE %s: %d %s", test.query, got.status, got.text)
		}
		if test.status == 200 && !strings.Contains(got.text, `"recoverable_until":null`) {
			t.Errorf("a bucket that is gone for good: %s", got.text)
		}
	}
}

// TestExpiryNeedsWhatDeletingNeeds: a key that may not delete an object cannot have it removed by expiry either.
func TestExpiryNeedsWhatDeletingNeeds(t *testing.T) {
	t.Parallel()
	w := open(t)
	bucket := w.bucket(t, "expiring")
	set := func(key, body string) reply {
		return w.do(t, request{method: "PATCH", path: "/buckets/" + bucket.ID, key: key, body: body})
	}
	want := func(got reply, days int) {
		t.Helper()
		if b := get[wire.Bucket](t, got); (b.ExpireAfterDays == nil) != (days == 0) || days != 0 && *b.ExpireAfterDays != days {
			t.Errorf("%s, want %d", got.text, days)
		}
	}
	refuse := func(body string) {
		t.Helper()
		for key, code := range map[string]model.Code{w.org.developer: model.CodeInsufficientScope, w.org.careful: model.CodeDangerousNotAllowed} {
			deletion := w.do(t, request{method: "DELETE", path: "/buckets/" + bucket.ID + "/objects/k", key: key})
			got := set(key, body)
			if got.status != 403 || got.code != string(code) || got.msg != deletion.msg {
				t.Errorf("%s: %s, want what a delete is answered: %s", body, got.text, deletion.text)
			}
			if entry := w.entry(t, w.org.organization, got.header.Get("X-Request-Id")); entry.Action != model.ActionBucketUpdate || entry.Outcome != model.OutcomeDenied {
				t.Errorf("%s: audited as %+v", body, entry)
			}
		}
	}
	refuse(`{"expire_after_days":30}`)
	refuse(`{"public":true,"expire_after_days":30}`)
	want(set(w.org.developer, `{"expire_after_days":0}`), 0)
	want(set(w.org.full, `{"expire_after_days":30}`), 30)
	refuse(`{"expire_after_days":29}`)
	for _, key := range []string{w.org.developer, w.org.careful} {
		want(set(key, `{"public":false}`), 30)
		want(set(key, `{"expire_after_days":30}`), 30)
	}
	want(set(w.org.developer, `{"expire_after_days":31}`), 31)
	want(set(w.org.full, `{"expire_after_days":1}`), 1)
	want(set(w.org.careful, `{"expire_after_days":0}`), 0)
	refuse(`{"expire_after_days":36500}`)
	for _, rules := range []string{`[{"days":9}]`, `[{"prefix":"tmp/","days":9}]`, `[{"prefix":"tmp/","noncurrent_days":9}]`} {
		refuse(`{"expiry_rules":` + rules + `}`)
	}
}

// TestExpiryRules covers the rules of a bucket, and what is refused.
func TestExpiryRules(t *testing.T) {
	t.Parallel()
	w := open(t)
	bucket := w.bucket(t, "expiring")
	for _, c := range []struct{ body, want string }{
		{
			`{"expiry_rules":[{"prefix":"tmp/","days":1},{"noncurrent_days":30}]}`,
			`"expire_after_days":null,"expiry_rules":[{"prefix":"","days":null,"noncurrent_days":30},{"prefix":"tmp/","days":1,"noncurrent_days":null}]`,
		},
		{
			`{"expire_after_days":9}`,
			`"expire_after_days":9,"expiry_rules":[{"prefix":"","days":9,"noncurrent_days":30},{"prefix":"tmp/","days":1,"noncurrent_days":null}]`,
		},
		{`{"expire_after_days":9,"expiry_rules":[]}`, `expire_after_days: must not be given together with expiry_rules`},
		{`{"expiry_rules":[{"prefix":"tmp/"}]}`, `expiry_rules: must say days or noncurrent_days for the prefix \"tmp/\"`},
		{`{"expiry_rules":[{"days":0}]}`, `expiry_rules[0].days: must be at least 1`},
		{`{"expiry_rules":[{"days":1.5}]}`, `expiry_rules[0].days: must be a whole number`},
		{`{"expiry_rules":[{"days":1},{"days":2}]}`, `expiry_rules: must not have two rules for the prefix \"\"`},
		{`{"expiry_rules":[]}`, `"expire_after_days":null,"expiry_rules":[]`},
	} {
		got := w.do(t, request{method: "PATCH", path: "/buckets/" + bucket.ID, key: w.org.full, body: c.body})
		if !strings.Contains(got.text, c.want) || (got.status == 200) != strings.HasPrefix(c.want, `"`) {
			t.Errorf("%s: %d %s", c.body, got.status, got.text)
		}
	}
}

func TestBucketNames(t *testing.T) {
	w := open(t)
	w.bucket(t, "taken")
	got := w.do(t, request{method: "POST", path: "/buckets", key: w.org.full, body: `{"project":"` + w.org.project + `","name":"taken"}`})
	if got.status != 409 || got.code != string(model.CodeConflict) {
		t.Errorf("a taken name: %d %s", got.status, got.text)
	}
	public := get[wire.Bucket](t, w.do(t, request{method: "POST", path: "/buckets", key: w.org.full, body: `{"project":"` + w.org.project + `","name":"open","public":true}`}))
	object := w.put(t, public.ID, "a b/c", "x")
	if object.PublicURL == nil || *object.PublicURL != *public.PublicURL+"a%20b/c" || !strings.HasPrefix(text(object.DownloadURL), w.server.URL+"/objects/") {
		t.Errorf("public_url %v, download_url %s", object.PublicURL, text(object.DownloadURL))
	}
}

// TestMetadata shows what a client of the S3 protocol has stored with an object.
func TestMetadata(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "photos")
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization, Operation: model.OperationFor(model.ActionObjectUpload)}
	_, err := w.engine.Objects.ObjectUpload(t.Context(), call, objects.Upload{
		Bucket: bucket.ID, Key: "cat", ContentType: "image/png", Body: strings.NewReader("cat"), Length: 3,
		Describe: func(o *model.Object) { o.Attributes = &model.Attributes{Metadata: map[string]string{"owner": "ann"}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, bucket.ID, "dog", "dog")
	for key, want := range map[string]string{"cat": "ann", "dog": ""} {
		o := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/" + key, key: w.org.full}))
		if o.Metadata == nil || o.Metadata["owner"] != want {
			t.Errorf("the metadata of %s are %v", key, o.Metadata)
		}
	}
}

// TestConditionalChanges: a change with If-Match is made if nobody else has changed the settings since the ETag was
// returned; objects are not settings.
func TestConditionalChanges(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "shared")
	path := "/buckets/" + bucket.ID
	send := func(method, match, body string) reply {
		t.Helper()
		in := request{method: method, path: path, key: w.org.full, body: body, header: map[string]string{}}
		if match != "" {
			in.header["If-Match"] = match
		}
		if body != "" {
			in.contentType = "application/json"
		}
		return w.do(t, in)
	}
	tag := send("GET", "", "").header.Get("ETag")
	w.do(t, request{method: "POST", path: path + "/objects?key=k", key: w.org.full, body: "bytes"})
	changed := send("PATCH", tag, `{"public":true}`)
	if next := changed.header.Get("ETag"); changed.status != 200 || next == tag || next != send("GET", "", "").header.Get("ETag") {
		t.Fatalf("%d, ETag %s after %s: %s", changed.status, next, tag, changed.text)
	}
	for _, test := range []struct {
		method, match, body string
		status              int
		code                model.Code
	}{
		{"PATCH", tag, `{"public":false}`, 412, model.CodeConflict},
		{"PATCH", "W/" + changed.header.Get("ETag"), `{"public":false}`, 412, model.CodeConflict},
		{"PATCH", "nonsense", `{"public":false}`, 422, model.CodeValidation},
		{"DELETE", tag, "", 412, model.CodeConflict},
		{"GET", tag, "", 422, model.CodeValidation},
		{"PATCH", `"other", ` + changed.header.Get("ETag"), `{"public":true}`, 200, ""},
		{"PATCH", "*", `{"public":true}`, 200, ""},
	} {
		if got := send(test.method, test.match, test.body); got.status != test.status || got.code != string(test.code) {
			t.Errorf("%s If-Match %s: %d %s", test.method, test.match, got.status, got.text)
		}
	}
	if got := get[wire.Bucket](t, send("GET", "", "")); !got.Public {
		t.Error("a refused change was made")
	}
}
