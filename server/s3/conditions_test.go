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
