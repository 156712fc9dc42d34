package cli_test

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"holdfast/server/api/wire"
)

// TestBucketWebsite makes a website of a bucket by commands, and visits it.
func TestBucketWebsite(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	address := freeAddress(t)
	m.start("--s3-listen", address, "--s3-website-url", "http://web.test:8080")
	run := func(code int, stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append([]string{"bucket"}, args...)...)
		cmd.Stdin, cmd.Env = strings.NewReader(stdin), []string{"HOME=" + t.TempDir(), "HOLDFAST_URL=" + m.api, "HOLDFAST_API_KEY=" + m.key}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
		return string(out)
	}
	visit := func(path string) (status int, body, to string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "site.web.test:8080"
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text), answer.Header.Get("Location")
	}
	bucket := m.createBucket("site")
	put := func(key, content string) {
		m.must("POST", "/buckets/"+bucket+"/objects?key="+key, strings.NewReader(content), nil)
	}
	put("docs/index.html", "the docs")
	put("secret.html", "a secret")
	put("404.html", "not here")
	shown := run(0, `[{"key_prefix":"old/","redirect_status":302,"replace_key_prefix":"docs/"}]`,
		"website", "site", "--index", "index.html", "--error", "404.html", "--rules", "-")
	if !strings.Contains(shown, "http://site.web.test:8080/") {
		t.Errorf("shown: %s", shown)
	}
	if status, body, _ := visit("/docs/"); status != http.StatusForbidden || strings.Contains(body, "docs") {
		t.Errorf("before it is public: %d %s", status, body)
	}
	run(0, "", "update", "site", "--public-prefix", "docs/", "--public-prefix", "404.html")
	for path, want := range map[string]struct {
		status   int
		body, to string
	}{
		"/docs/":       {200, "the docs", ""},
		"/old/a":       {302, "", "http://site.web.test:8080/docs/a"},
		"/docs/none":   {404, "not here", ""},
		"/secret.html": {403, "not here", ""},
	} {
		status, body, to := visit(path)
		if status != want.status || !strings.Contains(body, want.body) || to != want.to {
			t.Errorf("%s: %d %q to %q", path, status, body, to)
		}
	}
	var b wire.Bucket
	run(0, "", "website", "site", "--redirect", "https://example.com/")
	if m.must("GET", "/buckets/"+bucket, nil, &b); b.Website == nil || deref(b.Website.RedirectHost) != "example.com" {
		t.Errorf("%+v", b.Website)
	}
	if _, _, to := visit("/a?b=c"); to != "https://example.com/a?b=c" {
		t.Errorf("redirected to %q", to)
	}
	run(0, "", "website", "site", "--off")
	if status, _, _ := visit("/docs/"); status != http.StatusNotFound {
		t.Errorf("once it is off: %d", status)
	}
	for _, wrong := range [][]string{{"--error", "e"}, {"--off", "--index", "i"}, {"--index", "i", "--redirect", "example.com"}, {"--redirect", "https://example.com/a"}} {
		run(2, "", append([]string{"website", "site"}, wrong...)...)
	}
}
