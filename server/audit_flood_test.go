package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// from returns a client whose requests come from an address.
func from(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func download(t *testing.T, client *http.Client, url string, want int) {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != want {
		t.Fatalf("GET %s: %d, want %d", url, answer.StatusCode, want)
	}
}

// TestAnonymousFloodHidesNothing downloads from a public bucket, and guesses at a private one, as fast as possible
// and from many addresses. Downloads by signed URLs are still in the audit log, and the entries of the flood are
// bounded.
func TestAnonymousFloodHidesNothing(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	public, private := s.bucket(t, "public", true), s.bucket(t, "private", false)
	open := s.put(t, public, "open", "text/plain", "open")
	secret, other := s.put(t, private, "secret", "text/plain", "secret"), s.put(t, private, "other", "text/plain", "other")
	began := time.Now()
	const requests = 40
	flood := func() {
		for n := range 10 {
			client := from(t, fmt.Sprintf("127.0.1.%d", n+1))
			for i := range requests {
				download(t, client, s.URL+open.PublicPath, 200)
				download(t, client, s.URL+objects.ObjectPath+private+fmt.Sprintf("/guess%d", i), 404)
				download(t, client, s.URL+objects.ObjectPath+public+fmt.Sprintf("/guess%d", i), 404)
				download(t, client, s.URL+recovery.ExportPath+fmt.Sprintf("guess%d", i), 404)
			}
		}
	}
	flood()
	download(t, from(t, "127.0.1.1"), s.URL+secret.DownloadPath, 200)
	for range 500 { // a client with a signed URL hides no other's download with it
		download(t, from(t, "127.0.2.1"), s.URL+other.DownloadPath, 200)
	}
	download(t, from(t, "127.0.2.2"), s.URL+secret.DownloadPath, 200)
	flood()

	logged, floods := map[string]int{}, 0
	entries := s.allEntries(t, func(all []model.AuditEntry) bool {
		clear(logged)
		for _, e := range all {
			if e.Action == model.ActionObjectDownload && e.Resource.Name == "secret" && e.Outcome == model.OutcomeSuccess {
				logged[e.IP]++
			}
		}
		return len(logged) == 2
	})
	if logged["127.0.1.1"] != 1 || logged["127.0.2.2"] != 1 {
		t.Errorf("the secret's downloads are logged as %v", logged)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.IP, "127.0.1.") && e.Resource.Name != "secret" {
			floods++
		}
	}
	// Two classes, public and rejected, for each minute that this took.
	if bound := 2 * 20 * (int(time.Since(began).Minutes()) + 2); floods > bound {
		t.Errorf("%d entries of the flood in the organization's log, more than %d", floods, bound)
	}
}

// allEntries waits until the organization's audit log satisfies enough.
func (s *site) allEntries(t *testing.T, enough func([]model.AuditEntry) bool) (all []model.AuditEntry) {
	t.Helper()
	testenv.Poll(2*time.Second, func() bool {
		all = nil
		for page, more := 1, true; more; page++ {
			var part []model.AuditEntry
			var err error
			if part, more, err = s.engine.Core.AuditList(s.call(), core.AuditFilter{}, page, 100); err != nil {
				t.Fatal(err)
			}
			all = append(all, part...)
		}
		return enough(all)
	})
	return all
}
