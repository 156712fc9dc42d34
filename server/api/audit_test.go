package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// entry returns the audit entry of the request from the organization's log, once there is one.
func (w *world) entry(tb testing.TB, organization, requestID string) model.AuditEntry {
	tb.Helper()
	among := func(newest int) (found []model.AuditEntry) {
		entries, _, err := w.engine.Core.AuditList(&model.Call{Organization: organization}, core.AuditFilter{}, 1, newest)
		if err != nil {
			tb.Fatal(err)
		}
		return slices.DeleteFunc(entries, func(e model.AuditEntry) bool { return e.RequestID != requestID })
	}
	polls := 0
	await(tb, func() (bool, bool) {
		newest := 5 // reading many entries takes longer than the request
		if polls++; polls%20 == 0 {
			newest = 100
		}
		return false, len(among(newest)) > 0
	})
	found := among(100)
	if len(found) != 1 {
		tb.Fatalf("%d audit entries for one request", len(found))
	}
	return found[0]
}

func TestEveryRequestIsAudited(t *testing.T) {
	w := open(t, func(c *core.Config) {
		c.Rates[model.RateCreateBucket] = core.Rate{Limit: 1, Window: time.Hour}
	})
	bucket := w.bucket(t, "first")
	known := &model.Call{}
	if err := w.engine.Access.Authenticate(known, w.org.full); err != nil {
		t.Fatal(err)
	}
	key := known.Key
	revoked := w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly})
	w.revoke(t, revoked)
	agent := "test/1 \t" + strings.Repeat("x", 1000)
	for _, test := range []struct {
		name    string
		in      request
		org     string
		action  model.Action
		outcome model.Outcome
		code    model.Code
	}{
		{"read", request{method: "GET", path: "/databases", key: w.org.full}, w.org.organization, model.ActionDatabaseList, model.OutcomeSuccess, ""},
		{"change", request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, body: "x"}, w.org.organization, model.ActionObjectUpload, model.OutcomeSuccess, ""},
		{"malformed", request{method: "GET", path: "/databases?limit=0", key: w.org.full}, w.org.organization, model.ActionDatabaseList, model.OutcomeError, model.CodeValidation},
		{"malformed query", request{method: "GET", path: "/databases?%zz", key: w.org.full}, w.org.organization, model.ActionDatabaseList, model.OutcomeError, model.CodeValidation},
		{"missing", request{method: "GET", path: "/databases/" + nobody, key: w.org.full}, w.org.organization, model.ActionDatabaseGet, model.OutcomeError, model.CodeNotFound},
		{"limited", request{method: "POST", path: "/buckets", key: w.org.full, body: "{}"}, w.org.organization, model.ActionBucketCreate, model.OutcomeDenied, model.CodeRateLimited},
		{"without scope", request{method: "POST", path: "/buckets", key: w.org.read}, w.org.organization, model.ActionBucketCreate, model.OutcomeDenied, model.CodeInsufficientScope},
		{"without key", request{method: "GET", path: "/databases"}, "", model.ActionDatabaseList, model.OutcomeDenied, model.CodeUnauthorized},
		{"revoked key", request{method: "GET", path: "/databases", key: revoked}, w.org.organization, model.ActionDatabaseList, model.OutcomeDenied, model.CodeUnauthorized},
		{"revoked key, unknown path", request{method: "GET", path: "/nothing/here", key: revoked}, w.org.organization, model.ActionUnknown, model.OutcomeError, model.CodeNotFound},
		{"device", request{method: "POST", path: "/device/authorize"}, "", model.ActionDeviceAuthorize, model.OutcomeSuccess, ""},
		{"unknown path", request{method: "GET", path: "/nothing/here"}, "", model.ActionUnknown, model.OutcomeError, model.CodeNotFound},
		{"unknown path with key", request{method: "GET", path: "/nothing/here", key: w.org.full}, w.org.organization, model.ActionUnknown, model.OutcomeError, model.CodeNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.in.header = map[string]string{"User-Agent": agent, "X-Request-Id": "req_chosen_by_the_client"}
			got := w.do(t, test.in)
			id := got.header.Get("X-Request-Id")
			if id == "req_chosen_by_the_client" {
				t.Error("the client chose the request's id")
			}
			e := w.entry(t, test.org, id)
			if e.Action != test.action || e.Outcome != test.outcome || e.ErrorCode != test.code {
				t.Errorf("%s %s %s, want %s %s %s", e.Action, e.Outcome, e.ErrorCode, test.action, test.outcome, test.code)
			}
			if e.IP != "127.0.0.1" || len(e.UserAgent) > model.MaxUserAgent || strings.Contains(e.UserAgent, "\t") {
				t.Errorf("ip %q, user agent %q", e.IP, e.UserAgent)
			}
			if test.in.key == w.org.full && e.Actor != (model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}) {
				t.Errorf("actor %+v", e.Actor)
			}
		})
	}
	if v, err := w.engine.Core.AuditVerify(&model.Call{Organization: w.org.organization}); err != nil || len(v.Faults) > 0 {
		t.Errorf("%v, %v", v.Faults, err)
	}
}

// The filters of the log, alone and together, and invalid filters.
func TestAuditLogFilters(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "first")
	w.do(t, request{method: "GET", path: "/databases", key: w.org.read})
	denied := w.do(t, request{method: "DELETE", path: "/buckets/" + bucket.ID, key: w.org.read})
	last := w.do(t, request{method: "GET", path: "/buckets", key: w.org.read})
	e := w.entry(t, w.org.organization, last.header.Get("X-Request-Id"))
	list := func(query string) []wire.AuditEntry {
		t.Helper()
		return get[[]wire.AuditEntry](t, w.do(t, request{method: "GET", path: "/account/audit-logs?" + query, key: w.org.full}))
	}
	for query, want := range map[string]int{
		"action=bucket.create": 1, "actor=" + e.Actor.ID: 3, "resource=" + bucket.ID: 1, "outcome=denied": 1,
		"actor=" + e.Actor.ID + "&outcome=success": 2, "actor=operator": 5, "action=bucket.create&outcome=denied": 0,
		"action=nothing": 0, "since=2100-01-01T00:00:00Z": 0, "until=2000-01-01T00:00:00Z": 0, "until=0001-01-02T00:00:00Z": 0,
		"action=bucket.create&since=0001-01-01T00:00:00Z": 1, "action=bucket.create&since=0000-01-01T00:00:00Z&until=9999-12-31T23:59:59Z": 1,
		"action=bucket.create&since=2000-01-01T00:00:00Z&until=2100-01-01T00:00:00Z": 1,
	} {
		if got := list(query); len(got) != want {
			t.Errorf("%s: %d entries, want %d: %+v", query, len(got), want, got)
		}
	}
	if got := list("request_id=" + last.header.Get("X-Request-Id")); len(got) != 1 || got[0].ID != e.ID {
		t.Errorf("the entry of a request: %+v", got)
	}
	if got := list("ip=" + e.IP + "&actor=" + e.Actor.ID); len(got) != 3 {
		t.Errorf("%d entries from %s", len(got), e.IP)
	}
	for _, query := range []string{"ip=203.0.113.9", "request_id=req_nonsense", "request_id=" + core.NewRequestID()} {
		if got := list(query); len(got) != 0 {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := list("outcome=denied"); *got[0].RequestID != denied.header.Get("X-Request-Id") {
		t.Errorf("denied was %+v", got[0])
	}
	for query, says := range map[string]string{
		"outcome=maybe": "outcome", "since=yesterday": "since", "action=": "action",
		"since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "until", "since=2026-01-02T00:00:00Z&until=0001-01-01T00:00:00Z": "until",
		"until=0001-01-01T00:00:00Z": "until", "until=0000-01-01T00:00:00Z": "until",
	} {
		r := w.do(t, request{method: "GET", path: "/account/audit-logs?" + query, key: w.org.full})
		if r.code != string(model.CodeValidation) || !strings.Contains(r.msg, says) {
			t.Errorf("%s: %s", query, r.text)
		}
	}
}

func TestAuditLogPages(t *testing.T) {
	w := open(t)
	for range 3 {
		w.do(t, request{method: "GET", path: "/databases", key: w.org.full})
	}
	last := w.do(t, request{method: "GET", path: "/buckets", key: w.org.full})
	w.entry(t, w.org.organization, last.header.Get("X-Request-Id"))
	seen := map[string]bool{}
	for page := 1; ; page++ {
		got := w.do(t, request{method: "GET", path: "/account/audit-logs?limit=3&page=" + string(rune('0'+page)), key: w.org.full})
		entries := get[[]wire.AuditEntry](t, got)
		if got.more == nil {
			t.Fatalf("no has_next: %s", got.text)
		}
		for _, e := range entries {
			seen[e.ID] = true
		}
		if !*got.more || page == 9 {
			break
		}
	}
	if len(seen) < 9 { // organization, four keys, four requests
		t.Errorf("%d entries on all pages", len(seen))
	}
	if past := get[[]wire.AuditEntry](t, w.do(t, request{method: "GET", path: "/account/audit-logs?page=1000000000", key: w.org.full})); len(past) != 0 {
		t.Errorf("%d entries behind the last page", len(past))
	}
}

// TestAuditExport exports the log: the same entries as the list's, and a last line. Without that line it was cut off.
func TestAuditExport(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "first")
	for range 300 { // more than are read at once
		w.do(t, request{method: "GET", path: "/buckets", key: w.org.read})
	}
	last := w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID, key: w.org.read})
	w.entry(t, w.org.organization, last.header.Get("X-Request-Id"))
	for query, want := range map[string]int{"?action=bucket.list": 300, "?resource=" + bucket.ID: 2, "?action=nothing": 0, "?request_id=" + last.header.Get("X-Request-Id"): 1} {
		entries, end := w.export(t, "/account/audit-logs/export"+query, w.org.full)
		if len(entries) != want || !end.Complete || end.Entries != want {
			t.Errorf("%s: %d entries, %+v", query, len(entries), end)
		}
		for _, e := range entries {
			if e.Hash == "" || e.PreviousHash == "" {
				t.Errorf("%s: %+v", query, e)
			}
		}
	}
	if entries, _ := w.export(t, "/account/audit-logs/export", w.org.full); !slices.IsSortedFunc(entries, func(a, b wire.AuditEntry) int { return b.At.Compare(a.At) }) {
		t.Error("the newest are not first")
	}
	if got := w.do(t, request{method: "HEAD", path: "/account/audit-logs/export", key: w.org.read}); got.status != 200 || got.header.Get("Content-Type") != auditLines {
		t.Errorf("HEAD: %d %v", got.status, got.header)
	}
	for query, says := range map[string]string{
		"outcome=maybe": "outcome", "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "until", "page=2": "page", "limit=1": "limit",
	} {
		r := w.do(t, request{method: "GET", path: "/account/audit-logs/export?" + query, key: w.org.full})
		if r.code != string(model.CodeValidation) || !strings.Contains(r.msg, says) {
			t.Errorf("%s: %s", query, r.text)
		}
	}
}

// TestAuditExportIsCutOff ends the appliance while an export is sent.
func TestAuditExportIsCutOff(t *testing.T) {
	w := open(t)
	for range 600 {
		w.do(t, request{method: "GET", path: "/buckets", key: w.org.read})
	}
	testenv.Eventually(t, "the entries, which are written a moment later", func() bool {
		entries, _ := w.export(t, "/account/audit-logs/export", w.org.full)
		return len(entries) > 600
	})
	w.engine.Core.Watchers.End()
	res := w.get(t, "/account/audit-logs/export", w.org.full)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil || !strings.Contains(string(text), `"bucket.list"`) || strings.Contains(string(text), `"complete"`) {
		t.Errorf("%v after %d bytes", err, len(text))
	}
}

// get sends a request whose response need not be the envelope.
func (w *world) get(t *testing.T, path, key string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.server.URL+Prefix+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (w *world) export(t *testing.T, path, key string) (entries []wire.AuditEntry, end wire.AuditExportEnd) {
	t.Helper()
	res := w.get(t, path, key)
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != auditLines || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %s", res.StatusCode, kind)
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if end.Complete {
			t.Errorf("after the last line: %s", lines.Text())
		}
		var e wire.AuditEntry
		if err := errors.Join(json.Unmarshal(lines.Bytes(), &e), json.Unmarshal(lines.Bytes(), &end)); err != nil {
			t.Fatal(err)
		}
		if e.ID != "" {
			entries = append(entries, e)
		}
	}
	return entries, end
}
