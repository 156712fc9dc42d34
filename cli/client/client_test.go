package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://127.0.0.1:8432":       "http://127.0.0.1:8432/v1",
		"http://127.0.0.1:8432/":      "http://127.0.0.1:8432/v1",
		"http://127.0.0.1:8432/v1":    "http://127.0.0.1:8432/v1",
		"https://db.example.com/v1//": "https://db.example.com/v1",
		"https://example.com/db":      "https://example.com/db/v1",
		"127.0.0.1:8432":              "",
		"ftp://example.com":           "",
		"http://":                     "",
		"http://user:pw@example.com":  "",
		"http://example.com?x=y":      "",
	} {
		got, err := client.BaseURL(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", address, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("a password in %v", err)
		}
	}
}

// TestMalformedKey checks that a malformed key is rejected with an error that
// does not contain it.
func TestMalformedKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"sk_live_hf_\nsk_live_hf_x", "sk live", "schlüssel"} {
		if _, err := client.New(client.Config{URL: "http://127.0.0.1:8432", Key: key}); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestErrors checks the error of every kind of refusal.
func TestErrors(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	c, ctx := a.client(t), t.Context()
	expect := func(what string, err error, status int, code wire.ErrorCode, says string) *client.Error {
		t.Helper()
		refusal, ok := errors.AsType[*client.Error](err)
		if !ok || refusal.Status != status || refusal.Code != code || !strings.Contains(refusal.Message, says) || refusal.RequestID == "" {
			t.Errorf("%s: %#v", what, err)
			return &client.Error{}
		}
		return refusal
	}
	_, err := newClient(t, a.url, "sk_live_hf_nonsense", nil).GetUsage(ctx)
	expect("a bad key", err, 401, wire.CodeUnauthorized, "")
	_, err = c.GetDatabase(ctx, "db_01k6zv7r9pxa3c5n8m2q4t6w8y")
	expect("no database", err, 404, wire.CodeNotFound, "db_01k6zv7r9pxa3c5n8m2q4t6w8y")
	_, err = c.CreateBucket(ctx, wire.CreateBucket{Project: a.project, Name: "A"})
	expect("a bad name", err, 422, wire.CodeValidation, "name")
	_, err = c.CreateBucket(ctx, wire.CreateBucket{Project: a.project, Name: "files"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateBucket(ctx, wire.CreateBucket{Project: a.project, Name: "files"})
	if e := expect("a spent budget", err, 429, wire.CodeRateLimited, ""); e.RetryAfter <= 0 || e.RetryAfter > time.Hour {
		t.Errorf("try again in %s", e.RetryAfter)
	}
}

// TestOtherServers sends requests to servers that a wrong URL may reach.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	other := http.NewServeMux()
	other.HandleFunc("/page/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>welcome</html>") })
	other.HandleFunc("/status/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) })
	other.HandleFunc("/null/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":null,"meta":{}}`) })
	other.HandleFunc("/login/", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/stolen", http.StatusFound) })
	other.HandleFunc("/stolen", func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	server := httptest.NewServer(other)
	defer server.Close()
	for _, prefix := range []string{"/page", "/status", "/null", "/login", "/nothing"} {
		_, err := newClient(t, server.URL+prefix, "key", nil).GetUsage(t.Context())
		if !errors.Is(err, client.ErrNotAPI) {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	c, ctx := a.client(t), t.Context()
	bucket, err := c.CreateBucket(ctx, wire.CreateBucket{Project: a.project, Name: "files"})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{"a": true, "/a": true, "a//b": true, "a b?&%/ü": true, "empty": true}
	for i := range 120 {
		keys[fmt.Sprintf("many/%d", i)] = true
	}
	for key := range keys {
		body := strings.Repeat(key, 10)
		if key == "empty" {
			body = ""
		}
		o, err := c.UploadObject(ctx, bucket.ID, client.Upload{Key: key, Body: strings.NewReader(body), Size: int64(len(body)), ContentType: "text/plain"})
		if err != nil || o.Key != key || o.SizeBytes != int64(len(body)) || o.ContentType != "text/plain" {
			t.Fatalf("%q: %+v, %v", key, o, err)
		}
	}
	for o, err := range c.Objects(ctx, bucket.ID, "") {
		if err != nil || !keys[o.Key] {
			t.Fatalf("listed: %+v, %v", o, err)
		}
		delete(keys, o.Key)
	}
	if len(keys) > 0 {
		t.Errorf("not listed: %v", keys)
	}
	var entries []string
	for e, err := range c.Entries(ctx, bucket.ID, "a") {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e.Name)
		if folder := strings.HasSuffix(e.Name, "/"); folder != (e.Object == nil) {
			t.Errorf("%+v", e)
		}
	}
	if slices.Sort(entries); !slices.Equal(entries, []string{"a", "a b?&%/", "a/"}) {
		t.Errorf("one level: %q", entries)
	}
	for _, key := range []string{"/a", "a//b", "a b?&%/ü"} {
		if o, err := c.GetObject(ctx, bucket.ID, key, ""); err != nil || o.Key != key {
			t.Errorf("%q: %+v, %v", key, o, err)
		}
		if _, err := c.DeleteObject(ctx, bucket.ID, key, ""); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	_, err = c.UploadObject(ctx, bucket.ID, client.Upload{Key: "a", Body: strings.NewReader("x"), Size: -1, IfAbsent: true})
	if client.CodeOf(err) != wire.CodeConflict {
		t.Errorf("over one that is there: %v", err)
	}
}

// TestRefusedUploadIsNotSent checks that an upload is refused before its body
// is sent.
func TestRefusedUploadIsNotSent(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	body := &counting{Reader: bytes.NewReader(make([]byte, 900<<10))}
	_, err := newClient(t, a.url, "sk_live_hf_nonsense", nil).UploadObject(t.Context(), "bucket_01k6zv7r9pxa3c5n8m2q4t6w8y",
		client.Upload{Key: "a", Body: body, Size: 900 << 10})
	if client.CodeOf(err) != wire.CodeUnauthorized || body.n > 0 {
		t.Errorf("%v, after %d bytes", err, body.n)
	}
}

type counting struct {
	io.Reader
	n int
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// TestUploadLeavesBodyAlone checks that the client does not read a body after
// the request has ended.
func TestUploadLeavesBodyAlone(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	c := newClient(t, a.url, a.key, nil)
	bucket, err := c.CreateBucket(t.Context(), wire.CreateBucket{Project: a.project, Name: "files"})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{5, -1} {
		var bodies [2]*ending // the second is sent once the connection is done with the first
		for n := range bodies {
			bodies[n] = &ending{Reader: strings.NewReader("hello")}
			if _, err := c.UploadObject(t.Context(), bucket.ID, client.Upload{Key: "a", Body: bodies[n], Size: size}); err != nil {
				t.Fatal(err)
			}
		}
		if bodies[0].late.Load() {
			t.Errorf("size %d: the body was read after its end", size)
		}
	}
}

// ending records whether it is read after its end.
type ending struct {
	io.Reader
	ended, late atomic.Bool
}

// Read implements io.Reader.
func (e *ending) Read(p []byte) (int, error) {
	if e.ended.Load() {
		e.late.Store(true)
	}
	n, err := e.Reader.Read(p)
	if err == io.EOF {
		e.ended.Store(true)
	}
	return n, err
}

// TestDamagedUpload checks that bytes changed in transit are detected.
func TestDamagedUpload(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	c := newClient(t, a.url, a.key, damaging{})
	bucket, err := c.CreateBucket(t.Context(), wire.CreateBucket{Project: a.project, Name: "files"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.UploadObject(t.Context(), bucket.ID, client.Upload{Key: "a", Body: strings.NewReader("hello"), Size: 5})
	if !errors.Is(err, client.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// TestUploadOfAnotherLength checks that a body that grew or shrank is not
// stored, and that a read error is not reported as a connection error.
func TestUploadOfAnotherLength(t *testing.T) {
	t.Parallel()
	a := newAppliance(t)
	c := a.client(t)
	bucket, err := c.CreateBucket(t.Context(), wire.CreateBucket{Project: a.project, Name: "files"})
	if err != nil {
		t.Fatal(err)
	}
	for name, up := range map[string]struct {
		client.Upload
		is error
	}{
		"not empty":  {client.Upload{Body: strings.NewReader("x"), Size: 0}, client.ErrChanged},
		"grown":      {client.Upload{Body: strings.NewReader("hello, world"), Size: 5}, client.ErrChanged},
		"shrunk":     {client.Upload{Body: strings.NewReader("hell"), Size: 5}, client.ErrChanged},
		"unreadable": {client.Upload{Body: iotest.ErrReader(io.ErrClosedPipe), Size: 5}, io.ErrClosedPipe},
		"broken off": {client.Upload{Body: iotest.ErrReader(io.ErrClosedPipe), Size: -1}, io.ErrClosedPipe},
	} {
		up.Key = name
		_, err := c.UploadObject(t.Context(), bucket.ID, up.Upload)
		if _, carried := errors.AsType[*url.Error](err); carried || !errors.Is(err, up.is) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.GetObject(t.Context(), bucket.ID, name, ""); client.CodeOf(err) != wire.CodeNotFound {
			t.Errorf("%s was stored: %v", name, err)
		}
	}
}

// damaging changes the bytes of an upload.
type damaging struct{}

// RoundTrip implements http.RoundTripper.
func (damaging) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("key") {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body = io.NopCloser(strings.NewReader("hellp"))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestDownload(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the key was sent with a signed URL")
		}
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("hello, world"))
	}))
	defer server.Close()
	c := newClient(t, server.URL, "key", nil)
	for offset, want := range map[int64]string{0: "hello, world", 7: "world"} {
		body, err := c.OpenDownload(t.Context(), server.URL, `"v1"`, offset)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != want {
			t.Errorf("from %d: %q, %v", offset, text, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.OpenDownload(t.Context(), server.URL, `"v0"`, 7); !errors.Is(err, client.ErrChanged) {
		t.Errorf("of another version: %v", err)
	}
}

// TestDownloadRefused checks that the appliance's reason is told, and that a proxy's page is not taken for one.
func TestDownloadRefused(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		kind, retryAfter, text string
		want                   string
	}{
		"appliance": {"text/plain; charset=utf-8", "30", "the bytes are\naway\n", "the bytes are away"},
		"proxy":     {"text/html", "", "<h1>503</h1>", client.ErrUnavailable.Error()},
		"empty":     {"text/plain", "30", "", "answers 503"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", answer.kind)
			if answer.retryAfter != "" {
				w.Header().Set("Retry-After", answer.retryAfter)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, answer.text)
		}))
		_, err := newClient(t, server.URL, "key", nil).OpenDownload(t.Context(), server.URL, "", 0)
		if err == nil || !strings.Contains(err.Error(), answer.want) {
			t.Errorf("%s: %v, want %q", name, err, answer.want)
		}
		if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.RetryAfter != 30*time.Second {
			t.Errorf("%s: to be retried after %s", name, refusal.RetryAfter)
		}
		server.Close()
	}
}

// TestAll checks that an iteration left early requests no more pages, and that
// an error ends it.
func TestAll(t *testing.T) {
	t.Parallel()
	asked := 0
	list := func(_ context.Context, o client.ListOptions) (client.Page[int], error) {
		asked++
		if asked > 2 {
			return client.Page[int]{}, errConnection
		}
		return client.Page[int]{Items: []int{1, 2}, Next: "more"}, nil
	}
	for range client.All(t.Context(), list) {
		break
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	var got []int
	var last error
	for n, err := range client.All(t.Context(), list) {
		if last = err; err == nil {
			got = append(got, n)
		}
	}
	if len(got) != 2 || !errors.Is(last, errConnection) {
		t.Errorf("%v, %v", got, last)
	}
}

// TestConditionalUpdate: the ETag of a record makes a change conditional.
func TestConditionalUpdate(t *testing.T) {
	t.Parallel()
	var sent string
	c := newClient(t, "http://appliance.test", "key", carrier(func(r *http.Request) *http.Response {
		sent = r.Header.Get("If-Match")
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Etag": {`"one"`}},
			Body: io.NopCloser(strings.NewReader(`{"data":{},"meta":{}}`)),
		}
	}))
	var tag string
	if _, err := c.GetBucket(client.WithIfMatch(client.WithETag(t.Context(), &tag), `"x"`), "bucket_1"); err != nil || tag != `"one"` || sent != "" {
		t.Errorf("read: ETag %s, If-Match %s, %v", tag, sent, err)
	}
	if _, err := c.UpdateBucket(client.WithIfMatch(t.Context(), tag), "bucket_1", wire.UpdateBucket{}); err != nil || sent != tag {
		t.Errorf("change: If-Match %s, %v", sent, err)
	}
}
