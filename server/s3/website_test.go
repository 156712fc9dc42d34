package s3

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

// page asks for a page of the website of a bucket.
func (w *world) page(t *testing.T, method, bucket, path string, header map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, w.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = bucket + ".web.test"
	return fetch(t, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, r, header)
}

// configureWebsite sets the configuration of a website.
func (w *world) configureWebsite(t *testing.T, bucket, inner string) (status int, code string) {
	t.Helper()
	status, code, _ = w.ask(t, w.org.full, "PUT", "/"+bucket+"?website", "<WebsiteConfiguration>"+inner+"</WebsiteConfiguration>", nil)
	return status, code
}

const websiteExample = `<IndexDocument><Suffix>index.html</Suffix></IndexDocument><ErrorDocument><Key>error.html</Key></ErrorDocument><RoutingRules>
<RoutingRule><Condition><KeyPrefixEquals>old/</KeyPrefixEquals></Condition><Redirect><ReplaceKeyPrefixWith>docs/</ReplaceKeyPrefixWith></Redirect></RoutingRule>
<RoutingRule><Condition><KeyPrefixEquals>lost/</KeyPrefixEquals><HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals></Condition>
<Redirect><HostName>archive.example.com</HostName><Protocol>https</Protocol><HttpRedirectCode>302</HttpRedirectCode><ReplaceKeyWith>found.html</ReplaceKeyWith></Redirect></RoutingRule></RoutingRules>`

// TestWebsite serves a bucket as a website: its index, errors and redirects, and nothing of a bucket that is not public.
func TestWebsite(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	if err := client.MakeBucket(ctx, "site", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	for key, o := range map[string]minio.PutObjectOptions{
		"index.html": {ContentType: "text/html"}, "docs/index.html": {ContentType: "text/html"}, "error.html": {ContentType: "text/html"},
		"lost/here": {}, "moved": {WebsiteRedirectLocation: "/docs/"},
	} {
		if _, err := client.PutObject(ctx, "site", key, bytes.NewReader([]byte(key)), int64(len(key)), o); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := w.page(t, "GET", "site", "/", nil); got.StatusCode != 404 {
		t.Errorf("a bucket without a website: %d", got.StatusCode)
	}
	endpoint := w.server.Config.Handler.(*Server)
	for host, want := range map[string]bool{"site.web.test": true, "Site.WEB.test:9000": true, "web.test": false, "siteweb.test": false} {
		if endpoint.Serves(host) != want {
			t.Errorf("%s is served: %t", host, !want)
		}
	}
	if status, code := w.configureWebsite(t, "site", websiteExample); status != 200 {
		t.Fatalf("%d %s", status, code)
	}
	if got, text := w.page(t, "GET", "site", "/", nil); got.StatusCode != 403 || strings.Contains(text, "index.html") {
		t.Errorf("a bucket that is not public: %d %s", got.StatusCode, text)
	}
	if err := client.SetBucketPolicy(ctx, "site", publicRead("site", "Allow")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		status   int
		body, to string
	}{
		"/":                          {200, "index.html", ""},
		"/?a=b":                      {200, "index.html", ""},
		"/?partNumber=7&versionId=x": {200, "index.html", ""},
		"/docs/":                     {200, "docs/index.html", ""},
		"/docs":                      {302, "", "http://site.web.test/docs/"},
		"/nowhere":                   {404, "error.html", ""},
		"/docs/none/":                {404, "error.html", ""},
		"/a/../b":                    {400, "error.html", ""},
		"/moved":                     {301, "", "http://site.web.test/docs/"},
		"/old/a?b=c":                 {301, "", "http://site.web.test/docs/a?b=c"},
		"/old//e.com":                {301, "", "http://site.web.test/docs//e.com"},
		"/lost/here":                 {200, "lost/here", ""},
		"/lost/there":                {302, "", "https://archive.example.com/found.html"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got, text := w.page(t, method, "site", path, map[string]string{"Range": "bytes=0-100"})
			if want.status == 200 {
				want.status = 206
			}
			if got.StatusCode != want.status || got.Header.Get("Location") != want.to || method == "GET" && text != want.body || method == "HEAD" && text != "" {
				t.Errorf("%s %s: %d %s %q", method, path, got.StatusCode, got.Header.Get("Location"), text)
			}
			if want.to == "" && (got.Header.Get("Content-Type") == "" || got.Header.Get("Content-Security-Policy") != "") {
				t.Errorf("%s %s: %v", method, path, got.Header)
			}
		}
	}
	got, _ := w.page(t, "GET", "site", "/", nil)
	if again, text := w.page(t, "GET", "site", "/", map[string]string{"If-None-Match": got.Header.Get("Etag")}); again.StatusCode != 304 || text != "" {
		t.Errorf("a page that the client has: %d %s", again.StatusCode, text)
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if got, _ := w.page(t, method, "site", "/index.html", nil); got.StatusCode != 405 {
			t.Errorf("%s: %d", method, got.StatusCode)
		}
	}
	if got, text := w.page(t, "GET", "<script>", "/", nil); got.StatusCode == 200 || strings.Contains(text, "<script>") {
		t.Errorf("a host that is none: %d %s", got.StatusCode, text)
	}
	if _, _, text := w.ask(t, w.org.read, "GET", "/site?website", "", nil); !strings.Contains(text, "<Key>error.html</Key>") || strings.Count(text, "<RoutingRule>") != 2 {
		t.Errorf("the configuration is %s", text)
	}
	if status, _ := w.configureWebsite(t, "site", "<RedirectAllRequestsTo><HostName>new.example.com</HostName></RedirectAllRequestsTo>"); status != 200 {
		t.Error(status)
	}
	if got, _ := w.page(t, "GET", "site", "/a?b", nil); got.StatusCode != 301 || got.Header.Get("Location") != "http://new.example.com/a?b" {
		t.Errorf("a website that moved: %d %s", got.StatusCode, got.Header.Get("Location"))
	}
	if status, _, _ := w.ask(t, w.org.read, "DELETE", "/site?website", "", nil); status != 403 {
		t.Errorf("a key that may only read deletes a website: %d", status)
	}
	if status, _, _ := w.ask(t, w.org.full, "DELETE", "/site?website", "", nil); status != 204 {
		t.Error(status)
	}
	if got, _ := w.page(t, "GET", "site", "/", nil); got.StatusCode != 404 {
		t.Errorf("a website that was deleted: %d", got.StatusCode)
	}
}

// TestWebsiteRefused covers configurations that would mislead.
func TestWebsiteRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	if err := w.minio(t, w.org.full).MakeBucket(context.Background(), "site", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	index := "<IndexDocument><Suffix>i</Suffix></IndexDocument>"
	rule := func(inner string) string {
		return index + "<RoutingRules><RoutingRule>" + inner + "</RoutingRule></RoutingRules>"
	}
	for inner, want := range map[string]string{
		"": "MalformedXML",
		"<IndexDocument><Suffix>a/b</Suffix></IndexDocument>":                           "InvalidArgument",
		index + "<ErrorDocument><Key>../x</Key></ErrorDocument>":                        "InvalidArgument",
		rule("<Redirect><HostName>a.example.com/x?</HostName></Redirect>"):              "InvalidRequest",
		rule("<Redirect><HostName>user@a.example.com</HostName></Redirect>"):            "InvalidRequest",
		rule("<Redirect><Protocol>javascript</Protocol></Redirect>"):                    "InvalidRequest",
		rule("<Redirect><HttpRedirectCode>200</HttpRedirectCode></Redirect>"):           "InvalidRequest",
		rule("<Redirect><HttpRedirectCode>304</HttpRedirectCode></Redirect>"):           "InvalidRequest",
		rule("<Redirect></Redirect>"):                                                   "MalformedXML",
		"<RedirectAllRequestsTo><HostName>a b</HostName></RedirectAllRequestsTo>":       "InvalidRequest",
		index + "<RedirectAllRequestsTo><HostName>a</HostName></RedirectAllRequestsTo>": "MalformedXML",
	} {
		if _, code := w.configureWebsite(t, "site", inner); code != want {
			t.Errorf("%s: %q, want %s", inner, code, want)
		}
	}
	if status, _, _ := w.ask(t, w.org.full, "GET", "/site?website", "", nil); status != 404 {
		t.Errorf("a refused website was kept: %d", status)
	}
	without := *w // nobody would see the website
	without.server = httptest.NewServer(New(w.engine, Options{URL: "http://s3.test", Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(without.server.Close)
	if status, code := without.configureWebsite(t, "site", index); status != 501 || code != "NotImplemented" {
		t.Errorf("without websites: %d %s", status, code)
	}
}
