package server

import (
	"net/http"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// TestPublicPrefixDownload checks that everybody reads the objects below public prefixes, and that others stay private.
func TestPublicPrefixDownload(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "files", false)
	change := func(prefixes ...string) (model.Bucket, error) {
		return s.engine.Objects.BucketUpdate(s.call(), bucket, objects.BucketChange{PublicPrefixes: &prefixes})
	}
	b, err := change("images/", "css", "images/big/")
	if err != nil || len(b.PublicPrefixes) != 2 || b.Public {
		t.Fatalf("%+v, %v", b, err)
	}
	for _, wrong := range []string{"", "a*", "a?", "${x}", "../", "a\n", string(make([]byte, model.MaxPublicPrefix+1))} {
		if _, err := change(wrong); model.CodeOf(err) != model.CodeValidation {
			t.Errorf("the prefix %q: %v", wrong, err)
		}
	}
	preflight := []string{"Origin", "https://example.com", "Access-Control-Request-Method", "GET"}
	for key, public := range map[string]bool{"images/a.png": true, "css.css": true, "cs": false, "image": false, "Images/a.png": false, "a/images/": false} {
		o := s.put(t, bucket, key, "text/plain", "x")
		if (o.PublicPath != "") != public {
			t.Errorf("%s has the public path %q", key, o.PublicPath)
		}
		want, allowed := http.StatusNotFound, http.StatusNotFound
		if public {
			want, allowed = http.StatusOK, http.StatusNoContent
		}
		path := objects.ObjectPath + bucket + "/" + key
		if answer, _ := s.ask(t, http.MethodGet, path); answer.StatusCode != want || (answer.Header.Get("Access-Control-Allow-Origin") == "*") != public {
			t.Errorf("%s: %d %v", key, answer.StatusCode, answer.Header)
		}
		if answer, _ := s.ask(t, http.MethodOptions, path, preflight...); answer.StatusCode != allowed {
			t.Errorf("a preflight for %s: %d", key, answer.StatusCode)
		}
		if answer, _ := s.ask(t, http.MethodGet, o.DownloadPath); answer.StatusCode != http.StatusOK {
			t.Errorf("%s by its signed link: %d", key, answer.StatusCode)
		}
	}
	if answer, _ := s.ask(t, http.MethodGet, objects.ObjectPath+bucket+"/images/../cs"); answer.StatusCode == http.StatusOK {
		t.Error("dots lead out of the public prefix")
	}
	if _, err := change(); err != nil {
		t.Fatal(err)
	}
	if answer, _ := s.ask(t, http.MethodGet, objects.ObjectPath+bucket+"/css.css"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("after the prefixes are gone: %d", answer.StatusCode)
	}
}
