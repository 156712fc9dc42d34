package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api"
	"holdfast/server/api/wire"
)

// send sends a request and returns its status, headers and body.
func (s *site) send(t *testing.T, method, target, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, strings.Replace(target, "http://127.0.0.1/", s.URL+"/", 1), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// makeLink calls the API and returns the data of the response.
func makeLink[T any](t *testing.T, s *site, key, path, body string) (data T) {
	t.Helper()
	answer, text := s.send(t, http.MethodPost, s.URL+"/v1"+path, body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	envelope := struct{ Data *T }{&data}
	if err := json.Unmarshal([]byte(text), &envelope); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	return data
}

// form returns a form with a file at its end.
func form(t *testing.T, fields map[string]string, name, file string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for field, value := range fields {
		if err := w.WriteField(field, value); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte(file)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// TestInvalidUploadLinksAreLimited: an address cannot try links without end.
func TestInvalidUploadLinksAreLimited(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	links := api.NewLinks(s.engine, api.Options{Log: slog.New(slog.DiscardHandler)})
	try := func(from string) int {
		r := httptest.NewRequest(http.MethodPut, "/objects/bucket_1/key?link=x.y", strings.NewReader("x"))
		r.RemoteAddr = from + ":1"
		w := httptest.NewRecorder()
		links.ServeHTTP(w, r)
		return w.Code
	}
	admitted, got := 0, 0
	for ; admitted < 60_000; admitted++ { // a slow machine takes longer than the minute of a budget
		if got = try("192.0.2.1"); got != http.StatusForbidden {
			break
		}
	}
	if got != http.StatusTooManyRequests || admitted < 6000 {
		t.Fatalf("after %d: %d", admitted, got)
	}
	for from, want := range map[string]int{"192.0.2.1": http.StatusTooManyRequests, "192.0.2.2": http.StatusForbidden, "127.0.0.1": http.StatusForbidden} {
		if got := try(from); got != want {
			t.Errorf("%s: %d, want %d", from, got, want)
		}
	}
}

// TestUploadLinks uploads without a key, within what the link allows and beyond it, and after its key was revoked.
func TestUploadLinks(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	key, bucket, other := s.key(t), s.bucket(t, "files", false), s.bucket(t, "other", false)
	make := func(body string) wire.UploadLink {
		t.Helper()
		return makeLink[wire.UploadLink](t, s, key, "/buckets/"+bucket+"/upload-links", body)
	}
	content := func(key string) string {
		d, err := s.engine.Objects.ObjectOpen(t.Context(), s.call(), bucket, key, "")
		if err != nil {
			return ""
		}
		defer d.Content.Close()
		text, _ := io.ReadAll(d.Content)
		return d.ContentType + " " + string(text)
	}
	png := make(`{"key":"a b/cat","content_type":"image/png","max_bytes":5}`)
	answer, text := s.send(t, http.MethodPut, png.URL, "image", "Content-Type", png.Headers["Content-Type"])
	if answer.StatusCode != 200 || content("a b/cat") != "image/png image" || strings.Contains(text, "signature") {
		t.Fatalf("%d %s: %q", answer.StatusCode, text, content("a b/cat"))
	}
	prefix, once := make(`{"key_prefix":"up/"}`), make(`{"key":"once","if_absent":true}`)
	for _, put := range []struct {
		what, url, body, contentType string
		status                       int
	}{
		{"too large", png.URL, "images", "image/png", 413},
		{"another type", png.URL, "x", "text/html", 403},
		{"another key", strings.Replace(png.URL, "cat", "dog", 1), "x", "image/png", 403},
		{"another bucket", strings.Replace(png.URL, bucket, other, 1), "x", "image/png", 403},
		{"a changed link", strings.Replace(png.URL, "link=e", "link=f", 1), "x", "image/png", 403},
		{"more in the query", png.URL + "&x=1", "x", "image/png", 403},
		{"below the prefix", strings.Replace(prefix.URL, "/up/?", "/up/x/y?", 1), "x", "text/plain", 200},
		{"out of the prefix", strings.Replace(prefix.URL, "/up/?", "/upper?", 1), "x", "text/plain", 403},
		{"up from the prefix", strings.Replace(prefix.URL, "/up/?", "/up/%2e%2e/x?", 1), "x", "text/plain", 422},
		{"once", once.URL, "x", "text/plain", 200},
		{"twice", once.URL, "y", "text/plain", 409},
	} {
		if answer, text := s.send(t, http.MethodPut, put.url, put.body, "Content-Type", put.contentType); answer.StatusCode != put.status {
			t.Errorf("%s: %d %s, want %d", put.what, answer.StatusCode, text, put.status)
		}
	}
	page := make(`{"method":"POST","key_prefix":"page/","content_type":"text/*","expires_in":60}`)
	for _, post := range []struct {
		what   string
		fields map[string]string
		name   string
		status int
	}{
		{"as it was made", page.Fields, "notes.txt", 200},
		{"without fields", nil, "more.txt", 200},
		{"another key", map[string]string{"key": "other/x"}, "x", 403},
		{"an unknown field", map[string]string{"acl": "public"}, "x", 422},
		{"another type", map[string]string{"Content-Type": "image/png"}, "x", 403},
	} {
		fields := map[string]string{"Content-Type": "text/plain"}
		for name, value := range post.fields {
			fields[name] = value
		}
		body, contentType := form(t, fields, post.name, "text")
		if answer, text := s.send(t, http.MethodPost, page.URL, body, "Content-Type", contentType); answer.StatusCode != post.status {
			t.Errorf("%s: %d %s, want %d", post.what, answer.StatusCode, text, post.status)
		}
	}
	if content("page/notes.txt") != "text/plain text" || content("page/more.txt") == "" {
		t.Error("the forms' files are missing")
	}
	if answer, _ := s.send(t, http.MethodPut, page.URL, "x"); answer.StatusCode != 403 {
		t.Errorf("PUT by a link for forms: %d", answer.StatusCode)
	}
	download := makeLink[wire.DownloadLink](t, s, key, "/buckets/"+bucket+"/download-links", `{"key":"a b/cat","content_disposition":"attachment; filename=dog.png"}`)
	if answer, text := s.send(t, http.MethodGet, download.URL, ""); text != "image" || answer.Header.Get("Content-Disposition") != `attachment; filename="dog.png"` {
		t.Errorf("download: %d %v %s", answer.StatusCode, answer.Header, text)
	}
	s.revoke(t, key)
	if answer, text := s.send(t, http.MethodPut, prefix.URL, "x"); answer.StatusCode != 403 {
		t.Errorf("upload with a revoked key's link: %d %s", answer.StatusCode, text)
	}
	if answer, text := s.send(t, http.MethodGet, download.URL, ""); answer.StatusCode != 404 {
		t.Errorf("download with a revoked key's link: %d %s", answer.StatusCode, text)
	}
}

// revoke revokes the key with a text.
func (s *site) revoke(t *testing.T, text string) {
	t.Helper()
	call := s.call()
	if err := s.engine.Access.Authenticate(call, text); err != nil {
		t.Fatal(err)
	}
	if _, err := s.engine.Access.KeyRevoke(s.call(), call.Key.ID); err != nil {
		t.Fatal(err)
	}
}

// TestRulesOfLinks: the rules of a bucket decide which pages may use its links.
func TestRulesOfLinks(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	key, bucket := s.key(t), s.bucket(t, "files", false)
	rules := []model.CORSRule{{Origins: []string{"https://app.example.com"}, Methods: []string{"PUT", "GET"}, Headers: []string{"content-type"}}}
	if _, err := s.engine.Objects.BucketUpdate(s.call(), bucket, objects.BucketChange{CORS: &rules}); err != nil {
		t.Fatal(err)
	}
	link := makeLink[wire.UploadLink](t, s, key, "/buckets/"+bucket+"/upload-links", `{"key":"k"}`)
	for _, test := range []struct {
		origin, method, header string
		status                 int
	}{
		{"https://app.example.com", "PUT", "content-type", 204},
		{"https://evil.example.com", "PUT", "", 404},
		{"https://app.example.com", "POST", "", 404},
		{"https://app.example.com", "PUT", "x-other", 404},
	} {
		answer, _ := s.send(t, http.MethodOptions, link.URL, "", "Origin", test.origin, "Access-Control-Request-Method", test.method, "Access-Control-Request-Headers", test.header)
		if answer.StatusCode != test.status || (answer.Header.Get("Access-Control-Allow-Origin") == test.origin) != (test.status == 204) {
			t.Errorf("%+v: %d %v", test, answer.StatusCode, answer.Header)
		}
	}
	for origin, want := range map[string]string{"https://app.example.com": "https://app.example.com", "https://evil.example.com": ""} {
		answer, text := s.send(t, http.MethodPut, link.URL, "x", "Origin", origin)
		if answer.StatusCode != 200 || answer.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("an upload from %s: %d %s %v", origin, answer.StatusCode, text, answer.Header)
		}
		view, err := s.engine.Objects.ObjectGet(s.call(), bucket, "k")
		if err != nil {
			t.Fatal(err)
		}
		if answer, _ := s.send(t, http.MethodGet, s.URL+view.DownloadPath, "", "Origin", origin); answer.StatusCode != 200 || answer.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("a download from %s: %d %v", origin, answer.StatusCode, answer.Header)
		}
	}
}

// TestFormOfALinkIsBounded: whoever has a link for a form cannot have long headers of its parts read into the memory, neither
// before the file nor after it.
func TestFormOfALinkIsBounded(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "files", false)
	link := makeLink[wire.UploadLink](t, s, s.key(t), "/buckets/"+bucket+"/upload-links", `{"method":"POST","key_prefix":"page/"}`)
	links := api.NewLinks(s.engine, api.Options{Log: slog.New(slog.DiscardHandler)})
	long := strings.Repeat("; a=b", 200_000)
	field := "--x\r\nContent-Disposition: form-data; name=\"key\"%s\r\n\r\npage/a\r\n"
	file := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"%s\r\n\r\ntext\r\n"
	for what, body := range map[string]string{
		"before the file": fmt.Sprintf(field, long) + fmt.Sprintf(file, ""),
		"of the file":     fmt.Sprintf(field, "") + fmt.Sprintf(file, long),
		"after the file":  fmt.Sprintf(field, "") + fmt.Sprintf(file, "") + fmt.Sprintf(file, long),
	} {
		text := strings.NewReader(body + "--x--\r\n")
		r := httptest.NewRequest(http.MethodPost, link.URL, text)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		w := httptest.NewRecorder()
		links.ServeHTTP(w, r)
		if read := int(text.Size()) - text.Len(); w.Code != 422 || !strings.Contains(w.Body.String(), "before its file") || read > 64<<10 {
			t.Errorf("%s: after %d bytes %d %s", what, read, w.Code, w.Body)
		}
	}
	if list, err := s.engine.Objects.ObjectList(s.call(), bucket, "", core.Page{}); err != nil || len(list.Items) > 0 {
		t.Errorf("the bucket has %+v, %v", list.Items, err)
	}
}
