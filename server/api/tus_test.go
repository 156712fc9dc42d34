package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	osexec "os/exec"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast/engine"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// tusServer serves a world's resumable uploads.
func (w *world) tusServer(t *testing.T) *httptest.Server {
	t.Helper()
	var handler http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	t.Cleanup(s.Close)
	handler = NewUploads(w.engine, Options{BaseURL: s.URL, Log: slog.New(slog.DiscardHandler)})
	return s
}

// tusClient is a hand-written tus client.
type tusClient struct {
	t   *testing.T
	key string
}

// do sends a request; header is a list of names and values.
func (c tusClient) do(method, url, body string, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Tus-Resumable", "1.0.0")
	r.Header.Set("Authorization", "Bearer "+c.key)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode >= 400 && method != http.MethodHead && !json.Valid(text) {
		c.t.Errorf("%s: %d with %q, not the envelope", method, answer.StatusCode, text)
	}
	return answer
}

func (c tusClient) create(server *httptest.Server, bucket, key string, length int) string {
	c.t.Helper()
	answer := c.do("POST", server.URL+UploadsPath+bucket, "", "Upload-Length", strconv.Itoa(length), "Upload-Metadata", metadata(key, "text/plain"))
	if answer.StatusCode != 201 || !strings.HasPrefix(answer.Header.Get("Location"), server.URL+UploadsPath+bucket+"/") {
		c.t.Fatalf("create: %d %v", answer.StatusCode, answer.Header)
	}
	return answer.Header.Get("Location")
}

func (c tusClient) patch(url string, offset int, body string) *http.Response {
	c.t.Helper()
	return c.do("PATCH", url, body, "Content-Type", tusBody, "Upload-Offset", strconv.Itoa(offset))
}

func metadata(key, contentType string) string {
	return "key " + base64.StdEncoding.EncodeToString([]byte(key)) + ",content_type " + base64.StdEncoding.EncodeToString([]byte(contentType))
}

// pairs returns more of Upload-Metadata: names and values.
func pairs(of ...string) (text string) {
	for i := 0; i < len(of); i += 2 {
		text += "," + of[i] + " " + base64.StdEncoding.EncodeToString([]byte(of[i+1]))
	}
	return text
}

// TestTusProperties stores properties with an object, as an upload in one request does, also if the appliance is
// restarted in the middle.
func TestTusProperties(t *testing.T) {
	var cfg core.Config
	w := open(t, func(c *core.Config) { cfg = *c })
	server, bucket := w.tusServer(t), w.bucket(t, "tus")
	c := tusClient{t, w.org.full}
	answer := c.do("POST", server.URL+UploadsPath+bucket.ID, "half", "Upload-Length", "8", "Content-Type", tusBody, "Upload-Metadata", metadata("k", "text/html")+
		pairs("tags", "team=blue&stage=a%20b", "cache_control", "max-age=60", "content_disposition", `attachment; filename="ä.txt"`, "meta-owner", "Ünn", "Meta-Kind", "", "relativePath", "ignored"))
	if answer.StatusCode != 201 || answer.Header.Get("Upload-Offset") != "4" {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	if err := w.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.engine, err = engine.Open(cfg); err != nil {
		t.Fatal(err)
	}
	location := strings.Replace(answer.Header.Get("Location"), server.URL, w.tusServer(t).URL, 1)
	if answer := c.patch(location, 4, "full"); answer.StatusCode != 204 {
		t.Fatal(answer.Status)
	}
	o, err := w.engine.Objects.ObjectGet(&model.Call{Organization: w.org.organization}, bucket.ID, "k")
	want := &model.Attributes{
		CacheControl: "max-age=60", ContentDisposition: `attachment; filename="ä.txt"`, Metadata: map[string]string{"owner": "Ünn", "kind": ""},
	}
	if err != nil || !reflect.DeepEqual(o.Attributes, want) || !maps.Equal(o.Tags, map[string]string{"team": "blue", "stage": "a b"}) || o.ContentType != "text/html" || o.SizeBytes != 8 {
		t.Errorf("%v: %+v", err, o)
	}
}

func TestTus(t *testing.T) {
	w := open(t)
	server, bucket := w.tusServer(t), w.bucket(t, "tus")
	c := tusClient{t, w.org.full}
	content := strings.Repeat("0123456789", 50_000)
	location := c.create(server, bucket.ID, "a/ü b", len(content))
	for offset := 0; offset < len(content); offset += 200_000 {
		head := c.do("HEAD", location, "")
		if head.StatusCode != 200 || head.Header.Get("Upload-Offset") != strconv.Itoa(offset) || head.Header.Get("Upload-Length") != strconv.Itoa(len(content)) || head.Header.Get("Upload-Expires") == "" ||
			head.Header.Get("Upload-Metadata") != metadata("a/ü b", "text/plain") {
			t.Errorf("at %d: %d %v", offset, head.StatusCode, head.Header)
		}
		if n := w.buckets(t)[0].ObjectCount; n != 0 {
			t.Fatal("half an object is there")
		}
		end := min(len(content), offset+200_000)
		if answer := c.patch(location, offset, content[offset:end]); answer.StatusCode != 204 || answer.Header.Get("Upload-Offset") != strconv.Itoa(end) {
			t.Fatalf("at %d: %d %v", offset, answer.StatusCode, answer.Header)
		}
	}
	o := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/" + url.PathEscape("a/ü b"), key: w.org.full}))
	_, crc := sums(content)
	if o.SizeBytes != int64(len(content)) || o.ContentType != "text/plain" || o.ChecksumCRC32C != crc {
		t.Errorf("%+v", o)
	}
	if b := w.buckets(t)[0]; b.ObjectCount != 1 || b.SizeBytes != int64(len(content)) {
		t.Errorf("%+v", b)
	}
	head := c.do("HEAD", location, "") // by a client that missed the response
	if h := head.Header; head.StatusCode != 200 || h.Get("Upload-Offset") != h.Get("Upload-Length") || h.Get("Upload-Expires") != "" || h.Get("Upload-Metadata") != "" {
		t.Errorf("HEAD of a complete upload: %d %v", head.StatusCode, h)
	}
	// Entries of operations that change nothing follow a moment later.
	actions := await(t, func() (map[string]int, bool) {
		actions := map[string]int{}
		for _, e := range get[[]wire.AuditEntry](t, w.do(t, request{method: "GET", path: "/account/audit-logs?limit=100", key: w.org.full})) {
			actions[e.Action]++
		}
		return actions, actions["upload.append"] >= 2
	})
	if actions["object.upload"] != 1 || actions["upload.create"] != 1 || actions["upload.append"] != 2 {
		t.Errorf("audited: %v", actions)
	}
}

func TestTusRefusals(t *testing.T) {
	w := open(t, func(c *core.Config) { c.MaxObjectBytes = 1000 })
	server, bucket, other := w.tusServer(t), w.bucket(t, "tus"), w.bucket(t, "other")
	c := tusClient{t, w.org.full}
	location := c.create(server, bucket.ID, "k", 10)
	id := location[strings.LastIndex(location, "/")+1:]
	w.put(t, bucket.ID, "taken", "x")
	create, meta := server.URL+UploadsPath+bucket.ID, metadata("k2", "text/plain")
	for _, test := range []struct {
		name, method, url, body string
		header                  []string
		want                    int
	}{
		{"another version", "HEAD", location, "", []string{"Tus-Resumable", "0.2.2"}, 412},
		{"no key", "HEAD", location, "", []string{"Authorization", ""}, 401},
		{"a key that may only read", "HEAD", location, "", []string{"Authorization", "Bearer " + w.org.read}, 403},
		{"another organization", "HEAD", location, "", []string{"Authorization", "Bearer " + w.other.full}, 404},
		{"another organization's bucket", "POST", create, "", []string{"Authorization", "Bearer " + w.other.full, "Upload-Length", "1", "Upload-Metadata", meta}, 404},
		{"another bucket", "HEAD", server.URL + UploadsPath + other.ID + "/" + id, "", nil, 404},
		{"no such upload", "PATCH", create + "/upl_none", "x", []string{"Content-Type", tusBody, "Upload-Offset", "0"}, 404},
		{"no content type", "PATCH", location, "x", []string{"Upload-Offset", "0"}, 415},
		{"no offset", "PATCH", location, "x", []string{"Content-Type", tusBody}, 422},
		{"negative offset", "PATCH", location, "x", []string{"Content-Type", tusBody, "Upload-Offset", "-1"}, 422},
		{"wrong offset", "PATCH", location, "x", []string{"Content-Type", tusBody, "Upload-Offset", "3"}, 409},
		{"no length", "POST", create, "", []string{"Upload-Metadata", meta}, 422},
		{"too large", "POST", create, "", []string{"Upload-Length", "1001", "Upload-Metadata", meta}, 413},
		{"no key of the object", "POST", create, "", []string{"Upload-Length", "1"}, 422},
		{"bad key of the object", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", metadata("a/../b", "")}, 422},
		{"too much metadata", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", metadata("k", "text/plain") + ",x " + strings.Repeat("AAAA", 4096)}, 422},
		{"bad metadata", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", "key !!"}, 422},
		{"bad type", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", metadata("k", "nonsense")}, 422},
		{"a tag twice", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta + pairs("tags", "a=1&a=2")}, 422},
		{"long metadata", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta + pairs("meta-a", strings.Repeat("x", 2049))}, 422},
		{"metadata twice", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta + pairs("meta-a", "x", "Meta-A", "y")}, 422},
		{"metadata without a name", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta + pairs("meta-", "x")}, 422},
		{"a control character", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta + pairs("cache_control", "a\nb")}, 422},
		{"a header of other uploads", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta, "X-Object-Meta-Owner", "ann"}, 422},
		{"tags of other uploads", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta, "X-Object-Tags", "a=1"}, 422},
		{"taken", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", metadata("taken", ""), "If-None-Match", "*"}, 409},
		{"a checksum", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta, "X-Checksum-SHA256", "garbage"}, 422},
		{"a checksum of what is sent", "PATCH", location, "x", []string{"Content-Type", tusBody, "Upload-Offset", "0", "Upload-Checksum", "sha1 garbage"}, 422},
		{"a part of another", "POST", create, "", []string{"Upload-Length", "1", "Upload-Metadata", meta, "Upload-Concat", "partial"}, 422},
		{"an encoding", "PATCH", location, "x", []string{"Content-Type", tusBody, "Upload-Offset", "0", "Content-Encoding", "gzip"}, 422},
		{"a condition", "DELETE", location, "", []string{"If-Match", `"stale"`}, 422},
		{"another method", "PUT", location, "", nil, 404},
	} {
		if answer := c.do(test.method, test.url, test.body, test.header...); answer.StatusCode != test.want {
			t.Errorf("%s: %d, want %d", test.name, answer.StatusCode, test.want)
		}
	}
	if answer := c.patch(location, 0, strings.Repeat("x", 11)); answer.StatusCode != 422 {
		t.Errorf("more than announced: %d", answer.StatusCode)
	}
	if answer := c.do("DELETE", location, ""); answer.StatusCode != 204 {
		t.Errorf("DELETE: %d", answer.StatusCode)
	}
	if answer := c.do("HEAD", location, ""); answer.StatusCode != 404 {
		t.Errorf("after DELETE: %d", answer.StatusCode)
	}
	options := c.do("OPTIONS", create, "", "Authorization", "", "Tus-Resumable", "")
	if options.StatusCode != 204 || options.Header.Get("Tus-Max-Size") != "1000" || !strings.Contains(options.Header.Get("Tus-Extension"), "creation") {
		t.Errorf("OPTIONS: %d %v", options.StatusCode, options.Header)
	}
}

// TestTusCreationWithUpload sends the bytes with the creation, and no bytes at all.
func TestTusCreationWithUpload(t *testing.T) {
	w := open(t)
	server, bucket := w.tusServer(t), w.bucket(t, "tus")
	c := tusClient{t, w.org.full}
	for key, body := range map[string]string{"whole": "hello", "empty": ""} {
		answer := c.do("POST", server.URL+UploadsPath+bucket.ID, body, "Upload-Length", strconv.Itoa(len(body)), "Upload-Metadata", metadata(key, ""), "Content-Type", tusBody)
		if answer.StatusCode != 201 || answer.Header.Get("Upload-Offset") != strconv.Itoa(len(body)) {
			t.Errorf("%s: %d %v", key, answer.StatusCode, answer.Header)
		}
		o := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/" + key, key: w.org.full}))
		if o.SizeBytes != int64(len(body)) || o.ContentType != "application/octet-stream" {
			t.Errorf("%s: %+v", key, o)
		}
	}
}

// TestTusBrokenConnection breaks the connection in the middle of a PATCH, and continues.
func TestTusBrokenConnection(t *testing.T) {
	w := open(t)
	server, bucket := w.tusServer(t), w.bucket(t, "tus")
	c := tusClient{t, w.org.full}
	content := strings.Repeat("abcdefghij", 10_000)
	location := c.create(server, bucket.ID, "k", len(content))
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "PATCH "+u.Path+" HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nAuthorization: Bearer "+w.org.full+
		"\r\nContent-Type: "+tusBody+"\r\nUpload-Offset: 0\r\nContent-Length: "+strconv.Itoa(len(content))+"\r\n\r\n"+content[:40_000])
	conn.Close()
	offset := 0
	testenv.Eventually(t, "what was sent of the upload", func() bool {
		offset, _ = strconv.Atoi(c.do("HEAD", location, "").Header.Get("Upload-Offset"))
		return offset == 40_000
	})
	testenv.Eventually(t, "the rest of the upload", func() bool {
		answer := c.patch(location, offset, content[offset:]) // 423 while the broken one still holds it
		if answer.StatusCode != 204 && answer.StatusCode != 423 {
			t.Fatalf("going on: %d", answer.StatusCode)
		}
		return answer.StatusCode == 204
	})
	o := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/k", key: w.org.full}))
	if _, crc := sums(content); o.ChecksumCRC32C != crc {
		t.Errorf("%+v", o)
	}
}

// TestTusRace sends the same bytes from many clients concurrently.
func TestTusRace(t *testing.T) {
	w := open(t)
	server, bucket := w.tusServer(t), w.bucket(t, "tus")
	c := tusClient{t, w.org.full}
	location := c.create(server, bucket.ID, "k", 100_000)
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() { statuses[i] = c.patch(location, 0, strings.Repeat("x", 100_000)).StatusCode })
	}
	wg.Wait()
	done := 0
	for _, status := range statuses {
		switch status {
		case 204:
			done++
		case 409, 423:
		default:
			t.Errorf("status %d", status)
		}
	}
	if b := w.buckets(t)[0]; done != 1 || b.ObjectCount != 1 || b.SizeBytes != 100_000 {
		t.Errorf("%d were acknowledged: %+v", done, b)
	}
}

// TestTusJSClient uploads with the most common client, and has it resume.
func TestTusJSClient(t *testing.T) {
	if _, err := os.Stat("testdata/node_modules/tus-js-client"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("tus-js-client is not there: npm install --prefix server/api/testdata, as .ci/run does")
	}
	w := open(t)
	server, bucket := w.tusServer(t), w.bucket(t, "tus")
	cmd := osexec.CommandContext(t.Context(), "node", "testdata/tus-client.cjs", server.URL+UploadsPath+bucket.ID, w.org.full)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for key, size := range map[string]int64{"from node": 3_000_000, "resumed": 3_000_000} {
		o := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/" + url.PathEscape(key), key: w.org.full}))
		if _, crc := sums(strings.Repeat("0123456789", 300_000)); o.SizeBytes != size || o.ChecksumCRC32C != crc || o.ContentType != "text/plain" {
			t.Errorf("%+v", o)
		}
	}
}
