package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/internal/testenv"
)

// site is the complete handler over an engine without PostgreSQL.
type site struct {
	*httptest.Server
	engine  *engine.Engine
	dataDir string
	call    func() *model.Call
	project string
}

func startSite(t *testing.T, objectsURL string) *site {
	t.Helper()
	s := &site{dataDir: t.TempDir()}
	e, err := engine.Open(core.Config{DataDir: s.dataDir, MaxObjectBytes: 1 << 30, AuditKeep: 1000, Rates: core.DefaultRates()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	if _, err := e.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := e.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	s.engine = e
	s.call = func() *model.Call {
		return &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: org.ID}
	}
	projects, err := e.Access.ProjectList(s.call(), core.Filter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	s.project = projects.Items[0].ID
	handler, err := newHandler(e, Options{BaseURL: "http://127.0.0.1", ObjectsURL: objectsURL, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(handler)
	t.Cleanup(s.Server.Close)
	return s
}

func (s *site) bucket(t *testing.T, name string, public bool) string {
	t.Helper()
	b, err := s.engine.Objects.BucketCreate(s.call(), objects.NewBucket{Project: s.project, Name: name, Public: public})
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

func (s *site) put(t *testing.T, bucket, key, contentType, content string) objects.ObjectView {
	t.Helper()
	o, err := s.engine.Objects.ObjectUpload(t.Context(), s.call(), objects.Upload{
		Bucket: bucket, Key: key, ContentType: contentType, Body: strings.NewReader(content), Length: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// ask sends a request; header is a list of names and values.
func (s *site) ask(t *testing.T, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // a cut-off body is simply short
	return answer, string(body)
}

// TestRanges requests parts of a small and of a large object.
func TestRanges(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "ranges", true)
	for key, size := range map[string]int{"small": 1000, "large": 3 << 20} {
		content := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		o := s.put(t, bucket, key, "text/plain", content)
		etag := `"` + o.Version + `"`
		modified := o.LastModified.UTC().Format(http.TimeFormat)
		for _, test := range []struct {
			header []string
			status int
			want   string
		}{
			{nil, 200, content},
			{[]string{"Range", "bytes=0-9"}, 206, content[:10]},
			{[]string{"Range", "bytes=990-"}, 206, content[990:]},
			{[]string{"Range", "bytes=-7"}, 206, content[size-7:]},
			{[]string{"Range", "bytes=5-5"}, 206, content[5:6]},
			{[]string{"Range", "bytes=0-99999999"}, 206, content},
			{[]string{"Range", "bytes=99999999-"}, 416, ""},
			{[]string{"Range", "bytes=0-99999999999999999999"}, 206, content},
			{[]string{"Range", "bytes=-99999999999999999999"}, 206, content},
			{[]string{"Range", "bytes=00000000000000000005-00000000000000000009"}, 206, content[5:10]},
			{[]string{"Range", "bytes=99999999999999999999-"}, 416, ""},
			{[]string{"Range", "bytes=9-0"}, 416, ""},
			{[]string{"Range", "bytes=-0"}, 416, ""},
			{[]string{"Range", "bytes= - 00 "}, 416, ""},
			{[]string{"Range", "bytes=-0, 0-9"}, 206, content[:10]},
			{[]string{"Range", "bytes=+5-9"}, 200, content},
			{[]string{"Range", "bytes=5-+9"}, 200, content},
			{[]string{"Range", "lines=1-2"}, 200, content},
			{[]string{"Range", "bytes"}, 200, content},
			{[]string{"Range", "Bytes=0-9"}, 206, content[:10]},
			{[]string{"Range", "BYTES=-7"}, 206, content[size-7:]},
			{[]string{"Range", "bytes=0-1,2-3,4-5,6-7,8-9,10-11,12-13,14-15,16-17"}, 200, content},
			{[]string{"If-None-Match", etag}, 304, ""},
			{[]string{"If-None-Match", `"other", ` + etag}, 304, ""},
			{[]string{"If-None-Match", `"other"`}, 200, content},
			{[]string{"If-Modified-Since", modified}, 304, ""},
			{[]string{"If-Modified-Since", "Mon, 02 Jan 2006 15:04:05 GMT"}, 200, content},
			{[]string{"If-Match", `"other"`}, 412, ""},
			{[]string{"Range", "bytes=0-9", "If-Range", etag}, 206, content[:10]},
			{[]string{"Range", "bytes=0-9", "If-Range", `"other"`}, 200, content},
			{[]string{"Range", "bytes=0-9", "If-Range", modified}, 200, content},
			{[]string{"Range", "bytes=0-9", "If-Range", `W/` + etag}, 200, content},
		} {
			answer, body := s.ask(t, http.MethodGet, o.DownloadPath, test.header...)
			if answer.StatusCode != test.status || test.status < 300 && body != test.want {
				t.Errorf("%s %v: %d, %d bytes, want %d, %d", key, test.header, answer.StatusCode, len(body), test.status, len(test.want))
			}
			head, none := s.ask(t, http.MethodHead, o.DownloadPath, test.header...)
			status, length, tag := test.status, answer.Header.Get("Content-Length"), answer.Header.Get("ETag")
			if status == 206 || status == 416 { // ranges apply only to GET
				status, length, tag = 200, strconv.Itoa(size), etag
			}
			if head.StatusCode != status || none != "" || status < 300 && head.Header.Get("Content-Length") != length || head.Header.Get("ETag") != tag {
				t.Errorf("%s %v: HEAD gives %d %v, GET %d %v", key, test.header, head.StatusCode, head.Header, answer.StatusCode, answer.Header)
			}
		}
		answer, body := s.ask(t, http.MethodGet, o.DownloadPath, "Range", "bytes=0-4,-5")
		_, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
		if err != nil || answer.StatusCode != 206 {
			t.Fatalf("two ranges: %d %v", answer.StatusCode, answer.Header)
		}
		parts := multipart.NewReader(strings.NewReader(body), parameters["boundary"])
		for _, want := range []string{content[:5], content[size-5:]} {
			part, err := parts.NextPart()
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(part); string(got) != want {
				t.Errorf("%s: part %q, want %q", key, got, want)
			}
		}
	}
}

// TestRangesOfNothing requests parts of an empty object, which has none.
func TestRangesOfNothing(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	o := s.put(t, s.bucket(t, "empty", false), "empty", "text/plain", "")
	for _, ranges := range []string{"bytes=-5", "bytes=0-", "bytes=0-0", "bytes=-0", "bytes=5-", "bytes=0-1,-3"} {
		answer, body := s.ask(t, http.MethodGet, o.DownloadPath, "Range", ranges)
		if answer.StatusCode != 200 || body != "" || answer.Header.Get("Content-Range") != "" || answer.Header.Get("Content-Length") != "0" {
			t.Errorf("%s: %d %v", ranges, answer.StatusCode, answer.Header)
		}
	}
}

// TestNothingIsRedirected requests, by every method, paths that a server might clean: none exists.
func TestNothingIsRedirected(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "exact", false)
	objs := "/v1/buckets/" + bucket + "/objects/"
	for _, path := range []string{
		"//", "//a", "/./", "/../v1/", "//v1", "//v1/", "/./v1/account", "//v1/account", "/x/../v1/account",
		"/" + objs + "a", "/" + objs + "/a", "/" + objs + "..", "/x/.." + objs + "a", "/." + objs + "%2e%2e/a", "/" + objs + "c%2Fd",
		"//uploads/" + bucket, "/" + objects.ObjectPath + bucket + "/a", "/databases/../settings", "/databases//", "/sign-in/.",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			answer, _ := s.ask(t, method, path)
			if answer.StatusCode != 404 || answer.Header.Get("Location") != "" {
				t.Errorf("%s %s: %d to %q", method, path, answer.StatusCode, answer.Header.Get("Location"))
			}
		}
	}
	for path, want := range map[string]int{"/": 303, "/sign-in": 200, "/assets/": 404, "/nothing/": 404} {
		if answer, _ := s.ask(t, http.MethodGet, path); answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
}

// TestConsoleDownload follows the console's links to objects whose keys are not clean paths.
func TestConsoleDownload(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	const email, password = "ada@example.com", "correct horse battery"
	if _, err := s.engine.Access.UserCreate(s.call(), access.NewUser{Email: email, Role: model.RoleViewer, Password: model.NewSecret(password)}); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	signedIn, err := browser.PostForm(s.URL+"/sign-in", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	signedIn.Body.Close()
	bucket := s.bucket(t, "keys", false)
	keys := []string{"a", "/a", "a/", "//a", "a/b", "a//b", "/", "a//", "ü //?#%2F&"}
	for _, key := range keys {
		s.put(t, bucket, key, "text/plain", "this is "+key)
	}
	for _, key := range keys {
		answer, err := browser.Get(s.URL + "/buckets/" + bucket + "/download?" + url.Values{"key": {key}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != 200 || string(body) != "this is "+key || err != nil {
			t.Errorf("%q: %d %.100q at %s, %v", key, answer.StatusCode, body, answer.Request.URL, err)
		}
	}
}

// TestSignedURL tries every way to evade a signature.
func TestSignedURL(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket, other, public := s.bucket(t, "private", false), s.bucket(t, "another", false), s.bucket(t, "public", true)
	o := s.put(t, bucket, "a b/ü?", "text/plain", "secret")
	s.put(t, bucket, "b", "text/plain", "secret")
	s.put(t, other, "a b/ü?", "text/plain", "secret")
	open := s.put(t, public, "k", "text/plain", "open")
	signed, err := url.Parse(o.DownloadPath)
	if err != nil {
		t.Fatal(err)
	}
	query := signed.Query()
	with := func(name, value string) string {
		changed := url.Values{"expires": {query.Get("expires")}, "signature": {query.Get("signature")}}
		changed.Set(name, value)
		return signed.EscapedPath() + "?" + changed.Encode()
	}
	later, _ := strconv.Atoi(query.Get("expires"))
	for path, want := range map[string]int{
		o.DownloadPath:            200,
		signed.EscapedPath():      404,
		with("expires", "1"):      404,
		with("expires", "x"):      404,
		with("signature", ""):     404,
		with("signature", "AAAA"): 404,
		objects.ObjectPath + other + "/a%20b/%C3%BC%3F?" + signed.RawQuery: 404,
		objects.ObjectPath + bucket + "/b?" + signed.RawQuery:              404,
		objects.ObjectPath + bucket + "/absent":                            404,
		objects.ObjectPath + "bucket_none/k":                               404,
		objects.ObjectPath:                                                 404,
		open.PublicPath:                                                    200,
		objects.ObjectPath + public + "/absent":                            404,
		with("expires", strconv.Itoa(later+1)):                             404,
	} {
		if answer, body := s.ask(t, http.MethodGet, path); answer.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, answer.StatusCode, body, want)
		}
	}
	if answer, _ := s.ask(t, http.MethodPost, o.DownloadPath); answer.StatusCode != 404 {
		t.Errorf("POST: %d", answer.StatusCode)
	}
	shut := false
	if _, err := s.engine.Objects.BucketUpdate(s.call(), public, objects.BucketChange{Public: &shut}); err != nil {
		t.Fatal(err)
	}
	if answer, _ := s.ask(t, http.MethodGet, open.PublicPath); answer.StatusCode != 404 {
		t.Errorf("after the bucket was made private: %d", answer.StatusCode)
	}
}

// TestHeadersOfDownloads uploads content that a browser could execute.
func TestHeadersOfDownloads(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "headers", true)
	for _, test := range []struct{ key, contentType, disposition string }{
		{"page.html", "text/html", `attachment; filename="page.html"`},
		{"x.svg", "image/svg+xml", `attachment; filename="x.svg"`},
		{"x.pdf", "application/pdf", `attachment; filename="x.pdf"`},
		{"x.js", "text/javascript", `attachment; filename="x.js"`},
		{"x.xml", "application/xml", `attachment; filename="x.xml"`},
		{"a/b/photo.png", "image/png", `inline; filename="photo.png"`},
		{"notes", "text/plain; charset=utf-8", `inline; filename="notes"`},
		{"song", "audio/mpeg", `inline; filename="song"`},
		{`we"ird\;%.txt`, "application/zip", `attachment; filename="we_ird___.txt"; filename*=UTF-8''we%22ird%5C%3B%25.txt`},
		{"grüße 日本.txt", "application/zip", `attachment; filename="gr__e __.txt"; filename*=UTF-8''gr%C3%BC%C3%9Fe%20%E6%97%A5%E6%9C%AC.txt`},
		{"/", "text/plain", "inline"},
	} {
		o := s.put(t, bucket, test.key, test.contentType, "<script>alert(1)</script>")
		answer, _ := s.ask(t, http.MethodGet, o.DownloadPath)
		for name, want := range map[string]string{
			"Content-Type": test.contentType, "Content-Disposition": test.disposition,
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Referrer-Policy": "no-referrer",
			"ETag": `"` + o.Version + `"`, "Access-Control-Allow-Origin": "*",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%q: %s: %s, want %s", test.key, name, got, want)
			}
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	public, private := s.bucket(t, "public", true), s.bucket(t, "private", false)
	s.put(t, public, "k", "text/plain", "x")
	o := s.put(t, private, "k", "text/plain", "x")
	ask := []string{"Origin", "https://example.com", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "range"}
	answer, _ := s.ask(t, http.MethodOptions, objects.ObjectPath+public+"/k", ask...)
	if answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(answer.Header.Get("Access-Control-Allow-Headers"), "Range") {
		t.Errorf("public: %d %v", answer.StatusCode, answer.Header)
	}
	for _, path := range []string{o.DownloadPath, objects.ObjectPath + "bucket_none/k"} {
		answer, _ := s.ask(t, http.MethodOptions, path, ask...)
		if answer.StatusCode != 404 || answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
	}
	if answer, _ := s.ask(t, http.MethodGet, objects.ObjectPath+public+"/absent"); answer.StatusCode != 404 || answer.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("an absent object of a public bucket: %d %v", answer.StatusCode, answer.Header)
	}
	if answer, _ := s.ask(t, http.MethodGet, o.DownloadPath); answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("other origins may read a private object")
	}
}

// TestObjectsHost gives downloads their own host: nothing else is there, and no uploaded content is anywhere else.
func TestObjectsHost(t *testing.T) {
	t.Parallel()
	s := startSite(t, "https://files.example.com")
	o := s.put(t, s.bucket(t, "public", true), "k", "text/plain", "x")
	for _, test := range []struct {
		host, path string
		want       int
	}{
		{"files.example.com", o.DownloadPath, 200},
		{"FILES.example.com", o.PublicPath, 200},
		{"files.example.com", "/", 404},
		{"files.example.com", "/v1/openapi.json", 404},
		{"files.example.com", "/setup", 404},
		{"127.0.0.1", o.DownloadPath, 404},
		{"127.0.0.1", "/v1/openapi.json", 200},
	} {
		if answer, _ := s.ask(t, http.MethodGet, test.path, "Host", test.host); answer.StatusCode != test.want {
			t.Errorf("%s%s: %d, want %d", test.host, test.path, answer.StatusCode, test.want)
		}
	}
}

// TestDamagedDownload flips a byte of objects: none of the bad bytes is served.
func TestDamagedDownload(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "damaged", false)
	content := map[string]string{"small": strings.Repeat("s", 5000), "large": strings.Repeat("l", 3<<20)}
	objs := map[string]objects.ObjectView{}
	for key, c := range content {
		objs[key] = s.put(t, bucket, key, "text/plain", c)
	}
	damage(t, s.dataDir, []byte(content["small"]))
	damage(t, s.dataDir, []byte(content["large"]))
	if answer, body := s.ask(t, http.MethodGet, objs["small"].DownloadPath); answer.StatusCode != 500 || strings.Contains(body, "ss") {
		t.Errorf("small: %d %.100s", answer.StatusCode, body)
	}
	if answer, _ := s.ask(t, http.MethodHead, objs["small"].DownloadPath); answer.StatusCode != 200 || answer.ContentLength != 5000 {
		t.Errorf("HEAD, which reads no bytes: %d, %d bytes", answer.StatusCode, answer.ContentLength)
	}
	for name, test := range map[string]struct {
		ranges string
		status int // 0 for a response that is cut off
	}{
		"whole":          {"", 0},
		"from its start": {"bytes=0-", 0},
		"up to it":       {"bytes=2000000-", 0},
		"the bad block":  {"bytes=2900000-", 500},
		"two ranges":     {"bytes=0-9,3000000-", 0},
	} {
		r, _ := http.NewRequest(http.MethodGet, s.URL+objs["large"].DownloadPath, nil)
		if test.ranges != "" {
			r.Header.Set("Range", test.ranges)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil && test.status == 0 {
			continue // cut off before its beginning was sent
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if bytes.Contains(body, []byte("X")) || bytes.Contains(body, []byte("ll")) && test.status != 0 {
			t.Errorf("%s: what is damaged was served", name)
		}
		if cut := err != nil; cut != (test.status == 0) || !cut && answer.StatusCode != test.status {
			t.Errorf("%s: %d %.100s, %v", name, answer.StatusCode, body, err)
		}
		if test.status != 0 && (answer.Header.Get("ETag") != "" || answer.Header.Get("Content-Disposition") != "") {
			t.Errorf("%s: headers of what was not sent: %v", name, answer.Header)
		}
	}
	if answer, body := s.ask(t, http.MethodGet, objs["large"].DownloadPath, "Range", "bytes=0-99999"); answer.StatusCode != 206 || body != content["large"][:100_000] {
		t.Errorf("what is whole of it: %d, %d bytes", answer.StatusCode, len(body))
	}
	call := s.call()
	advice, err := s.engine.Insight.Recommendations(call)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, a := range advice {
		if a.Code == "damaged_object" {
			named[a.Resource.Name] = true
		}
	}
	if !named["small"] || !named["large"] {
		t.Errorf("named are %v", named)
	}
}

// damage overwrites the last byte of content on the disk.
func damage(t *testing.T, dataDir string, content []byte) {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(dataDir, "blobs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if i := bytes.Index(data, content); err == nil && i >= 0 {
			found = true
			data[i+len(content)-1] = 'X'
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	})
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
}

// TestReplaceWhileDownloaded reads the old bytes to their end.
func TestReplaceWhileDownloaded(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "replaced", false)
	old := strings.Repeat("old ", 8<<20)
	o := s.put(t, bucket, "k", "text/plain", old)
	answer, err := http.Get(s.URL + o.DownloadPath)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	head := make([]byte, 4096)
	if _, err := io.ReadFull(answer.Body, head); err != nil {
		t.Fatal(err)
	}
	s.put(t, bucket, "k", "text/plain", "new")
	testenv.Eventually(t, "the removal of the old bytes", func() bool {
		blobs, _ := filepath.Glob(filepath.Join(s.dataDir, "blobs", "blobs", "*", "*"))
		return len(blobs) == 0
	})
	rest, err := io.ReadAll(answer.Body)
	if err != nil || string(head)+string(rest) != old {
		t.Errorf("%d bytes of the old, %v", len(head)+len(rest), err)
	}
	if _, body := s.ask(t, http.MethodGet, o.DownloadPath); body != "new" {
		t.Errorf("the new is %.20q", body)
	}
}
