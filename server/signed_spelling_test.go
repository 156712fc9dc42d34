package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
)

// raw sends a request with exactly the given target and Host, and returns the status and the body.
func (s *site) raw(t *testing.T, method, target string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: files.example\r\nConnection: close\r\n\r\n", method, target); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %q: %v", method, target, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// spellings returns other spellings of a signed path that a decoding server would treat as the same.
func spellings(t *testing.T, signed string) (all []string) {
	t.Helper()
	path, query, _ := strings.Cut(signed, "?")
	first, second, _ := strings.Cut(query, "&")
	for i := 0; i < len(path); i++ { // each byte escaped, and each escape in the other case
		if path[i] != '%' {
			all = append(all, fmt.Sprintf("%s%%%02X%s?%s", path[:i], path[i], path[i+1:], query))
			continue
		}
		hex := path[i+1 : i+3]
		if lower := strings.ToLower(hex); lower != hex {
			all = append(all, path[:i+1]+lower+path[i+3:]+"?"+query)
		}
		if decoded, err := url.PathUnescape(path[i : i+3]); err == nil && !strings.Contains(" \r\n\x00", decoded) {
			all = append(all, path[:i]+decoded+path[i+3:]+"?"+query)
		}
		i += 2
	}
	for i := 0; i < len(query); i++ {
		all = append(all, fmt.Sprintf("%s?%s%%%02X%s", path, query[:i], query[i], query[i+1:]))
	}
	return append(all,
		path+"?"+second+"&"+first, signed+"&", path+"?&"+query, path+"?"+first+"&&"+second, signed+"&x=1", path+"?x=1&"+query,
		signed+"&"+second, signed+"&"+first, path+"?"+first+";"+second, signed+";", signed+"=", signed+"#", signed+"#x", path+"#?"+query,
		strings.Replace(signed, "expires=", "expires=+", 1), strings.Replace(signed, "expires=", "expires=0", 1),
		strings.Replace(signed, "expires=", "expires=%20", 1), strings.Replace(signed, "expires", "Expires", 1),
		path+"/?"+query, "/"+signed, strings.Replace(signed, "/objects/", "/objects//", 1), strings.Replace(signed, "/objects/", "/./objects/", 1),
		strings.Replace(signed, "/objects/", "/x/../objects/", 1), strings.Replace(signed, "?", "??", 1), signed+"%", signed+"%3D",
		"http://files.example"+signed, "http://files.example:80"+signed, "https://else.example"+signed, path+";x?"+query, signed+"\t",
	)
}

// TestSignedURLInOneSpelling requests a signed URL in every other spelling. Each is rejected: logs, caches and lists
// of revoked links contain only one.
func TestSignedURLInOneSpelling(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	o := s.put(t, s.bucket(t, "private", false), "a b/ü?#+;%41(1)'é&=x~", "text/plain", "secret")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if status, _ := s.raw(t, method, o.DownloadPath); status != http.StatusOK {
			t.Fatalf("%s as it was signed: %d", method, status)
		}
	}
	for _, target := range spellings(t, o.DownloadPath) {
		if status, body := s.raw(t, http.MethodGet, target); status == http.StatusOK && strings.Contains(body, "secret") {
			t.Errorf("another spelling is let in: %q", target)
		}
	}
	// Clients that parse and rewrite the URL request exactly what was signed.
	if answer, body := s.ask(t, http.MethodGet, o.DownloadPath); answer.StatusCode != http.StatusOK || body != "secret" {
		t.Errorf("by a client of Go: %d", answer.StatusCode)
	}
	// Public content has no signature to evade.
	open := s.put(t, s.bucket(t, "public", true), "k", "text/plain", "open")
	if status, _ := s.raw(t, http.MethodGet, strings.Replace(open.PublicPath, "/k", "/%6B?x=1", 1)); status != http.StatusOK {
		t.Errorf("a public object by another spelling: %d", status)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "TRACE", "get"} {
		if status, body := s.raw(t, method, o.DownloadPath); status == http.StatusOK || strings.Contains(body, "secret") {
			t.Errorf("%s: %d", method, status)
		}
	}
	if status, _ := s.raw(t, http.MethodGet, strings.Replace(o.DownloadPath, objects.ObjectPath, recovery.ExportPath, 1)); status != http.StatusNotFound {
		t.Errorf("an object's signature for an export: %d", status)
	}
	s.refusedAreLogged(t, o)
}

// refusedAreLogged checks that the log has rejected spellings as rejected.
func (s *site) refusedAreLogged(t *testing.T, o objects.ObjectView) {
	t.Helper()
	found := false
	s.allEntries(t, func(all []model.AuditEntry) bool {
		for _, e := range all {
			found = found || e.Actor == model.Anybody() && e.Outcome == model.OutcomeError && e.Resource.ID == o.Bucket
		}
		return found
	})
	if !found {
		t.Error("no refused spelling is in the audit log")
	}
}
