package server

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// slowly is a body that arrives more slowly than the read timeout allows.
type slowly struct {
	content io.Reader
	pause   time.Duration
}

// Read implements io.Reader.
func (s *slowly) Read(p []byte) (int, error) {
	time.Sleep(s.pause) // a slow connection
	return s.content.Read(p[:min(len(p), 100)])
}

// TestUploadsThatTakeTheirTime sends objects for longer than the read timeout, in every possible way: as long as the
// bytes keep arriving, they are accepted.
func TestUploadsThatTakeTheirTime(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "slow", true)
	handler, err := newHandler(s.engine, Options{BaseURL: "http://127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = newHTTPServer(handler, Timeouts{Read: 200 * time.Millisecond}.orDefaults(), slog.New(slog.DiscardHandler))
	server.Start()
	t.Cleanup(server.Close)
	const size = 3000
	content := strings.Repeat("0123456789", size/10)
	key := s.key(t)
	browser := s.browser(t, server.URL)
	send := func(t *testing.T, client *http.Client, method, path, body string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+path, &slowly{strings.NewReader(body), 20 * time.Millisecond}) // 600 ms
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(body))
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Tus-Resumable", "1.0.0")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode >= 300 && answer.StatusCode != http.StatusSeeOther {
			t.Errorf("%s %s: %s %s", method, path, answer.Status, text)
		}
		return answer
	}
	ways := map[string]func(*testing.T){
		"api": func(t *testing.T) {
			send(t, http.DefaultClient, "POST", "/v1/buckets/"+bucket+"/objects?key=api", content)
		},
		"tus": func(t *testing.T) {
			made := send(t, http.DefaultClient, "POST", "/uploads/"+bucket, "", "Upload-Length", fmt.Sprint(size), "Upload-Metadata", "key dHVz")
			at, err := url.Parse(made.Header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			send(t, http.DefaultClient, "PATCH", at.Path, content, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
		},
		"tus-at-once": func(t *testing.T) {
			send(t, http.DefaultClient, "POST", "/uploads/"+bucket, content, "Upload-Length", fmt.Sprint(size),
				"Upload-Metadata", "key dHVzLWF0LW9uY2U=", "Content-Type", "application/offset+octet-stream")
		},
		"script": func(t *testing.T) {
			send(t, browser, "PUT", "/buckets/"+bucket+"?key=script", content, "Content-Type", "text/plain", "Origin", server.URL)
		},
		"form": func(t *testing.T) {
			send(t, browser, "POST", "/buckets/"+bucket, "--b\r\nContent-Disposition: form-data; name=file; filename=form\r\n\r\n"+content+"\r\n--b--\r\n",
				"Content-Type", "multipart/form-data; boundary=b", "Origin", server.URL)
		},
	}
	for key, way := range ways {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			way(t)
			if _, got := s.ask(t, "GET", objects.ObjectPath+bucket+"/"+key); got != content {
				t.Errorf("the object has %d bytes of %d", len(got), size)
			}
		})
	}
}

// key creates an API key that may do everything.
func (s *site) key(t *testing.T) string {
	t.Helper()
	secret, _, err := s.engine.Access.KeyCreate(s.call(), access.NewKey{Name: "test", Preset: model.PresetFullAccess, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Reveal()
}

// browser signs in to the console at base.
func (s *site) browser(t *testing.T, base string) *http.Client {
	t.Helper()
	const email, password = "ada@example.com", "correct horse battery"
	if _, err := s.engine.Access.UserCreate(s.call(), access.NewUser{Email: email, Role: model.RoleOwner, Password: model.NewSecret(password)}); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.PostForm(base+"/sign-in", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return browser
}
