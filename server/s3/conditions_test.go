package s3

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFailedCondition checks that a refusal names the condition that does not hold.
func TestFailedCondition(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ask(t, w.org.full, "PUT", "/vault", "", nil)
	w.ask(t, w.org.full, "PUT", "/vault/a", "the body", nil)
	_, _, list := w.ask(t, w.org.full, "GET", "/vault", "", nil)
	_, tag, _ := strings.Cut(list, "<ETag>")
	tag, _, _ = strings.Cut(tag, "</ETag>")
	tag = strings.ReplaceAll(tag, "&#34;", `"`)
	past, future := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		method, header, value string
		want                  string
	}{
		"a write where there is one":   {"PUT", "If-None-Match", "*", "If-None-Match"},
		"a write of another":           {"PUT", "If-Match", `"x"`, "If-Match"},
		"a write of no tag":            {"PUT", "If-Match", `""`, "If-Match"},
		"a download of another":        {"GET", "If-Match", `"x"`, "If-Match"},
		"a download of an older one":   {"GET", "If-Unmodified-Since", past, "If-Unmodified-Since"},
		"a deletion of another":        {"DELETE", "If-Match", `"x"`, "If-Match"},
		"a deletion of another size":   {"DELETE", "X-Amz-If-Match-Size", "1", "x-amz-if-match-size"},
		"a deletion of an older one":   {"DELETE", "X-Amz-If-Match-Last-Modified-Time", past, "x-amz-if-match-last-modified-time"},
		"a copy of another":            {"COPY", "X-Amz-Copy-Source-If-Match", `"x"`, "x-amz-copy-source-If-Match"},
		"a copy of the same":           {"COPY", "X-Amz-Copy-Source-If-None-Match", tag, "x-amz-copy-source-If-None-Match"},
		"a copy of an older one":       {"COPY", "X-Amz-Copy-Source-If-Unmodified-Since", past, "x-amz-copy-source-If-Unmodified-Since"},
		"a copy of a newer one":        {"COPY", "X-Amz-Copy-Source-If-Modified-Since", future, "x-amz-copy-source-If-Modified-Since"},
		"a copy to where there is one": {"COPY", "If-None-Match", "*", "If-None-Match"},
	} {
		method, header := c.method, []string{c.header, c.value}
		if method == "COPY" {
			method, header = "PUT", append(header, "X-Amz-Copy-Source", "/vault/a", "X-Amz-Metadata-Directive", "REPLACE")
		}
		status, code, text := w.ask(t, w.org.full, method, "/vault/a", "", nil, header...)
		if status != 412 || code != "PreconditionFailed" || !strings.Contains(text, "<Condition>"+c.want+"</Condition>") {
			t.Errorf("%s: %d %s, and not %s: %s", name, status, code, c.want, text)
		}
	}
}

// TestDeletionOfNothingIfMatch: a deletion with If-Match of what is not there is refused, and makes no delete marker. Other
// conditions are about an object that is there.
func TestDeletionOfNothingIfMatch(t *testing.T) {
	t.Parallel()
	w := open(t)
	full := w.org.full
	const versioning = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
	for _, bucket := range []string{"/plain", "/versioned"} {
		w.ask(t, full, "PUT", bucket, "", nil)
		if bucket == "/versioned" {
			w.ask(t, full, "PUT", bucket+"?versioning", versioning, nil)
		}
		w.ask(t, full, "PUT", bucket+"/lock", "mine", nil)
		if status, code, _ := w.ask(t, full, "DELETE", bucket+"/lock", "", nil, "If-Match", "*"); status != 204 {
			t.Errorf("%s: the first: %d %s", bucket, status, code)
		}
		_, _, before := w.ask(t, full, "GET", bucket+"?versions", "", nil)
		for _, path := range []string{"/lock", "/never"} {
			for _, tag := range []string{"*", `"abc"`} {
				if status, code, _ := w.ask(t, full, "DELETE", bucket+path, "", nil, "If-Match", tag); status != 404 || code != "NoSuchKey" {
					t.Errorf("%s%s, If-Match %s: %d %s", bucket, path, tag, status, code)
				}
			}
			batch := "<Delete><Object><Key>" + path[1:] + "</Key><ETag>abc</ETag></Object></Delete>"
			if status, _, text := w.ask(t, full, "POST", bucket+"?delete", batch, nil); status != 200 || !strings.Contains(text, "<Code>NoSuchKey</Code>") {
				t.Errorf("%s%s in a batch: %d %s", bucket, path, status, text)
			}
		}
		if _, _, after := w.ask(t, full, "GET", bucket+"?versions", "", nil); after != before {
			t.Errorf("%s: the versions before and after:\n%s\n%s", bucket, before, after)
		}
		if status, code, _ := w.ask(t, full, "DELETE", bucket+"/never", "", nil, "X-Amz-If-Match-Size", "1"); status != 204 {
			t.Errorf("%s, with a size: %d %s", bucket, status, code)
		}
	}
}
