package api

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

const pageOrigin = "https://app.example.com"

// share sets a rule of a bucket for the pages of pageOrigin.
func (w *world) share(t *testing.T, bucket string) {
	t.Helper()
	body := `{"cors":[{"origins":["` + pageOrigin + `"],"methods":["GET","HEAD","POST","PUT"],"headers":["*"],"expose_headers":["Date"],"max_age_seconds":60}]}`
	if got := w.do(t, request{method: "PATCH", path: "/buckets/" + bucket, key: w.org.full, body: body}); got.status != http.StatusOK {
		t.Fatal(got.text)
	}
}

// fromPage sends a request of a page of another origin, and returns the response with its body.
func fromPage(t *testing.T, origin, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", origin)
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

func preflightFor(t *testing.T, origin, url, method string, headers ...string) (*http.Response, string) {
	t.Helper()
	return fromPage(t, origin, http.MethodOptions, url, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", strings.Join(headers, ","))
}

// TestPreflights asks for requests of pages: by the API and by resumable uploads, as the bucket's rules allow and
// otherwise.
func TestPreflights(t *testing.T) {
	t.Parallel()
	w := open(t)
	shared, private, uploads := w.bucket(t, "shared"), w.bucket(t, "private"), w.tusServer(t)
	w.share(t, shared.ID)
	many := strings.Split(strings.Repeat("x,", 100)+"x", ",")
	for _, test := range []struct {
		what, origin, path, method string
		headers                    []string
		allowed                    bool
	}{
		{"a change", pageOrigin, "/objects/a/b", "PATCH", []string{"authorization", "content-type"}, true},
		{"an upload", pageOrigin, "/objects?key=a", "POST", []string{"authorization"}, true},
		{"a list", pageOrigin, "/objects", "GET", []string{"authorization"}, true},
		{"a method without a rule", pageOrigin, "/objects/a", "DELETE", nil, false},
		{"another origin", "https://evil.example.com", "/objects/a", "GET", nil, false},
		{"more headers than anybody sends", pageOrigin, "/objects/a", "GET", many, false},
		{"the bucket itself", pageOrigin, "", "PATCH", nil, false},
		{"its links", pageOrigin, "/upload-links", "POST", nil, false},
		{"its versions", pageOrigin, "/objectsx", "GET", nil, false},
	} {
		answer, text := preflightFor(t, test.origin, w.server.URL+Prefix+"/buckets/"+shared.ID+test.path, test.method, test.headers...)
		h := answer.Header
		if !test.allowed {
			if answer.StatusCode != http.StatusNotFound || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %d %v %s", test.what, answer.StatusCode, h, text)
			}
			continue
		}
		if answer.StatusCode != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != pageOrigin || !strings.Contains(h.Get("Access-Control-Allow-Methods"), test.method) ||
			h.Get("Access-Control-Allow-Headers") != strings.Join(test.headers, ", ") || h.Get("Access-Control-Max-Age") != "60" || !strings.Contains(h.Get("Vary"), "Origin") {
			t.Errorf("%s: %d %v %s", test.what, answer.StatusCode, h, text)
		}
	}
	for _, method := range []string{"POST", "PATCH", "HEAD"} {
		answer, _ := preflightFor(t, pageOrigin, uploads.URL+UploadsPath+shared.ID+"/upl_1", method, "tus-resumable", "upload-offset")
		if answer.StatusCode != http.StatusNoContent || answer.Header.Get("Access-Control-Allow-Origin") != pageOrigin || !strings.Contains(answer.Header.Get("Access-Control-Allow-Methods"), method) {
			t.Errorf("%s of a resumable upload: %d %v", method, answer.StatusCode, answer.Header)
		}
	}
	for _, url := range []string{w.server.URL + Prefix + "/buckets/%s/objects/a", uploads.URL + UploadsPath + "%s"} {
		var answers []string
		for _, bucket := range []string{private.ID, "bucket_00000000000000000000000000", strings.Repeat("x", 5000)} {
			answer, text := preflightFor(t, pageOrigin, fmt.Sprintf(url, bucket), "POST")
			answer.Header.Del("Date")
			text = strings.ReplaceAll(text, answer.Header.Get("X-Request-Id"), "")
			answer.Header.Del("X-Request-Id")
			answers = append(answers, fmt.Sprint(answer.StatusCode, answer.Header, text))
		}
		if answers[0] != answers[1] || answers[0] != answers[2] || strings.Contains(answers[0], "Access-Control") {
			t.Errorf("%s: strangers can tell buckets without rules from missing ones: %q", url, answers)
		}
	}
}

// TestPreflightsAreNotAudited: a preflight has no key and changes nothing, so it leaves neither an entry, which would use up
// those of requests without a key, nor a download in the metrics.
func TestPreflightsAreNotAudited(t *testing.T) {
	t.Parallel()
	w := open(t)
	shared, uploads := w.bucket(t, "shared"), w.tusServer(t)
	w.share(t, shared.ID)
	sent := map[string]bool{}
	for _, url := range []string{w.server.URL + Prefix + "/buckets/" + shared.ID + "/objects/a", uploads.URL + UploadsPath + shared.ID} {
		for _, origin := range []string{pageOrigin, "https://evil.example.com"} {
			answer, _ := preflightFor(t, origin, url, "POST")
			sent[answer.Header.Get("X-Request-Id")] = true
		}
	}
	last, _ := fromPage(t, pageOrigin, http.MethodGet, w.server.URL+Prefix+"/buckets/"+shared.ID+"/objects/a")
	w.entry(t, "", last.Header.Get("X-Request-Id")) // entries are written in their order
	entries, _, err := w.engine.Core.AuditList(&model.Call{}, core.AuditFilter{}, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if sent[e.RequestID] {
			t.Errorf("a preflight is audited: %s, %s", e.Action, e.Outcome)
		}
	}
	var answered model.Action
	g := newGate(w.engine, Options{Log: slog.New(slog.DiscardHandler), Answered: func(a model.Action, _ int, _ time.Duration) { answered = a }})
	r := httptest.NewRequest(http.MethodOptions, Prefix+"/buckets/"+shared.ID+"/objects/a", http.NoBody)
	r.Header.Set("Origin", pageOrigin)
	r.Header.Set("Access-Control-Request-Method", "GET")
	newRouter(g).ServeHTTP(httptest.NewRecorder(), r)
	if answered != model.ActionUnknown {
		t.Errorf("a preflight counts as %q", answered)
	}
}

// TestPagesOfOtherOrigins: pages of other origins read responses, refusals too, with the headers that clients need.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	w := open(t)
	shared, uploads := w.bucket(t, "shared"), w.tusServer(t)
	w.share(t, shared.ID)
	w.put(t, shared.ID, "a", "x")
	path, tus := w.server.URL+Prefix+"/buckets/"+shared.ID, []string{"Tus-Resumable", "1.0.0"}
	for _, test := range []struct {
		what, method, url string
		header            []string
		status            int
		exposed           []string // nil if the page may not read the response
	}{
		{"an object", "GET", path + "/objects/a", []string{"Authorization", "Bearer " + w.org.full}, 200, []string{"ETag", "Date", "X-Request-Id"}},
		{"no object", "HEAD", path + "/objects/b", []string{"Authorization", "Bearer " + w.org.full}, 404, []string{"ETag"}},
		{"no key", "GET", path + "/objects/a", nil, 401, []string{"ETag"}},
		{"a method without a rule", "DELETE", path + "/objects/b", nil, 401, nil},
		{"the bucket", "GET", path, []string{"Authorization", "Bearer " + w.org.full}, 200, nil},
		{
			"an upload", "POST", uploads.URL + UploadsPath + shared.ID, append(tus, "Authorization", "Bearer "+w.org.full, "Upload-Length", "1", "Upload-Metadata", "key YQ=="), 201,
			[]string{"Location", "Upload-Offset", "Upload-Expires", "Tus-Resumable", "Date"},
		},
		{"no upload", "HEAD", uploads.URL + UploadsPath + shared.ID + "/upl_1", append(tus, "Authorization", "Bearer "+w.org.full), 404, []string{"Upload-Offset"}},
	} {
		answer, text := fromPage(t, pageOrigin, test.method, test.url, test.header...)
		allowed, exposed := answer.Header.Get("Access-Control-Allow-Origin"), ", "+answer.Header.Get("Access-Control-Expose-Headers")+","
		if answer.StatusCode != test.status || (allowed == pageOrigin) != (test.exposed != nil) {
			t.Errorf("%s: %d %v %s", test.what, answer.StatusCode, answer.Header, text)
		}
		for _, name := range test.exposed {
			if !strings.Contains(exposed, ", "+name+",") {
				t.Errorf("%s: %s is not exposed: %s", test.what, name, exposed)
			}
		}
		if answer, _ := fromPage(t, "https://evil.example.com", test.method, test.url, test.header...); answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s, from another origin: %v", test.what, answer.Header)
		}
	}
}
