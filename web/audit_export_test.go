package web

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestAuditExport downloads what the page of the audit log has found, all pages of it.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 2500)
	link := regexp.MustCompile(`href="(/audit/export[^"]*)"`)
	for query, want := range map[string]string{"": "", "?action=key&actor=a+key&outcome=success": `{"complete":true,"entries":625}`, "?action=key&actor=nobody": `{"complete":true,"entries":0}`} {
		found := link.FindStringSubmatch(c.get(t, "/audit"+query))
		if found == nil {
			t.Fatalf("%s has no link", query)
		}
		answer := c.send(t, http.MethodGet, html.UnescapeString(found[1]), "", nil)
		lines := strings.Split(strings.TrimSpace(answer.page), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, `{"complete":true,`) || want != "" && last != want || !strings.Contains(answer.header.Get("Content-Disposition"), ".ndjson") {
			t.Errorf("%s: it ends with %s; %v", query, last, answer.header)
		}
		if first := lines[0]; len(lines) > 1 && !strings.HasPrefix(first, `{"id":`) {
			t.Errorf("%s: it begins with %s", query, first)
		}
	}
	if got := c.nobody().send(t, http.MethodGet, "/audit/export", "", nil); strings.Contains(got.page, `"complete"`) {
		t.Errorf("nobody receives %s", got.page)
	}
}

// TestAuditExportIsCutOff ends the appliance while the log is downloaded.
func TestAuditExportIsCutOff(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 2500)
	c.engine.Core.Watchers.End()
	answer, err := c.client.Get(c.server.URL + "/audit/export")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil || strings.Contains(string(text), `"complete"`) {
		t.Errorf("%v after %d bytes", err, len(text))
	}
}
