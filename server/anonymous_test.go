package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// TestAnonymousRequestsLeaveSmallEntries checks that clients without a key cannot fill the disk with the audit log:
// an entry keeps little of a request's text, and nothing that a terminal would interpret.
func TestAnonymousRequestsLeaveSmallEntries(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "files", true)
	long := strings.Repeat("x", 20<<10)
	for _, path := range []string{
		objects.ObjectPath + long + "/" + long, objects.ObjectPath + bucket + "/" + long, recovery.ExportPath + long,
		"/v1/" + long, "/uploads/" + long + "/" + long,
	} {
		for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodPatch} {
			s.ask(t, method, path, "User-Agent", "\u009b31m"+long)
		}
	}
	s.ask(t, http.MethodPatch, "/uploads/"+bucket+"/"+long, "Authorization", "Bearer "+long)
	entries := append(s.entries(t, "", 10), s.entries(t, s.call().Organization, 3)...)
	for _, e := range entries {
		size := len(e.UserAgent) + len(e.Resource.ID) + len(e.Resource.Name) + len(e.Details["path"]) + len(e.Details["method"])
		if size > 2048 || strings.Contains(e.UserAgent, "\u009b") {
			t.Errorf("%s keeps %d bytes, of %.20q", e.Action, size, e.UserAgent)
		}
	}
}

// entries waits until the organization has at least that many audit entries.
func (s *site) entries(t *testing.T, organization string, least int) (entries []model.AuditEntry) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprint(least, " audit entries"), func() bool {
		var err error
		if entries, _, err = s.engine.Core.AuditList(&model.Call{Organization: organization}, core.AuditFilter{}, 1, 100); err != nil {
			t.Fatal(err)
		}
		return len(entries) >= least
	})
	return entries
}
