package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// TestWebsite sets, shows and removes the website of a bucket.
func TestWebsite(t *testing.T) {
	w := open(t, func(c *core.Config) { c.WebsiteURL = "https://web.example.com:8443" })
	bucket := w.bucket(t, "site")
	change := func(body string) reply {
		return w.do(t, request{method: "PATCH", path: "/buckets/" + bucket.ID, key: w.org.full, contentType: "application/json", body: body})
	}
	site := `{"index_document":"index.html","error_document":"errors/404.html","rules":[{"key_prefix":"old/","replace_key_prefix":"new/"},` +
		`{"error_status":404,"redirect_host":"archive.example.com","redirect_protocol":"https","redirect_status":302,"replace_key":""}]}`
	b := get[wire.Bucket](t, change(`{"website":`+site+`}`))
	if b.Website == nil || b.Website.URL == nil || *b.Website.URL != "https://site.web.example.com:8443/" || len(b.Website.Rules) != 2 {
		t.Fatalf("%+v", b.Website)
	}
	if last := b.Website.Rules[1]; *last.ErrorStatus != 404 || *last.RedirectStatus != 302 || *last.ReplaceKey != "" || last.KeyPrefix != nil || last.ReplaceKeyPrefix != nil {
		t.Errorf("%+v", last)
	}
	for name, body := range map[string]string{
		"nothing": `{}`, "no index": `{"error_document":"e"}`, "slash": `{"index_document":"a/b"}`, "dots": `{"index_document":".."}`,
		"both": `{"index_document":"i","redirect_host":"example.com"}`, "no host": `{"redirect_protocol":"https"}`, "path": `{"redirect_host":"example.com/a"}`,
		"scheme": `{"redirect_host":"example.com","redirect_protocol":"ftp"}`, "line": `{"redirect_host":"example.com\r\nX: y"}`,
		"user": `{"redirect_host":"a@example.com"}`, "rules": `{"redirect_host":"example.com","rules":[{"replace_key":"a"}]}`,
		"empty rule": `{"index_document":"i","rules":[{}]}`, "rule to nowhere": `{"index_document":"i","rules":[{"key_prefix":"a"}]}`,
		"two keys": `{"index_document":"i","rules":[{"replace_key":"a","replace_key_prefix":"b"}]}`,
		"teapot":   `{"index_document":"i","rules":[{"error_status":418,"replace_key":"a"}]}`, "no redirect": `{"index_document":"i","rules":[{"redirect_status":304,"replace_key":"a"}]}`,
		"unknown": `{"index_document":"i","suffix":"x"}`, "unknown in a rule": `{"index_document":"i","rules":[{"replace_key":"a","suffix":"x"}]}`, "too many": `{"index_document":"i","rules":[` + strings.Repeat(`{"replace_key":"a"},`, 50) + `{"replace_key":"a"}]}`,
	} {
		if got := change(`{"website":` + body + `}`); got.status != http.StatusUnprocessableEntity || got.code != string(model.CodeValidation) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	if b := get[wire.Bucket](t, change(`{"public":true}`)); b.Website == nil {
		t.Error("another change removes the website")
	}
	moved := get[wire.Bucket](t, change(`{"website":{"redirect_host":"example.com","redirect_protocol":"http"}}`)).Website
	if moved == nil || *moved.RedirectHost != "example.com" || *moved.RedirectProtocol != wire.WebsiteHTTP || moved.IndexDocument != nil || len(moved.Rules) != 0 {
		text, _ := json.Marshal(moved)
		t.Errorf("%s", text)
	}
	if b := get[wire.Bucket](t, change(`{"website":null}`)); b.Website != nil {
		t.Errorf("%+v", b.Website)
	}
}

// TestWebsiteNotServed: where no websites are served, none can be set, and one that was set can be removed.
func TestWebsiteNotServed(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "site")
	for body, want := range map[string]int{`{"website":{"index_document":"i"}}`: http.StatusForbidden, `{"website":null}`: http.StatusOK} {
		got := w.do(t, request{method: "PATCH", path: "/buckets/" + bucket.ID, key: w.org.full, contentType: "application/json", body: body})
		if got.status != want || want != http.StatusOK && !strings.Contains(got.msg, "--s3-website-url") {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
}
