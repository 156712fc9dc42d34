package api

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
)

// entries returns the audit log of an organization, newest first, once it
// holds an entry for the request.
func (w *world) entry(tb testing.TB, organization, requestID string) model.AuditEntry {
	tb.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		call := &model.Call{Organization: organization}
		entries, _, err := w.engine.AuditList(call, 1, 100)
		if err != nil {
			tb.Fatal(err)
		}
		found := []model.AuditEntry{}
		for _, e := range entries {
			if e.RequestID == requestID {
				found = append(found, e)
			}
		}
		if len(found) > 1 {
			tb.Fatalf("%d audit entries for one request", len(found))
		}
		if len(found) == 1 {
			return found[0]
		}
		if time.Now().After(deadline) {
			tb.Fatalf("no audit entry for %s in %q", requestID, organization)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestEveryRequestIsAudited(t *testing.T) {
	w := open(t, func(c *engine.Config) {
		c.Rates[model.RateCreateBucket] = engine.Rate{Limit: 1, Window: time.Hour}
	})
	bucket := w.bucket(t, "first")
	key, err := w.engine.Authenticate(w.org.full, "")
	if err != nil {
		t.Fatal(err)
	}
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
			if e.IP != "127.0.0.1" || len(e.UserAgent) > maxUserAgent || strings.Contains(e.UserAgent, "\t") {
				t.Errorf("ip %q, user agent %q", e.IP, e.UserAgent)
			}
			if test.in.key == w.org.full && e.Actor != (model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}) {
				t.Errorf("actor %+v", e.Actor)
			}
		})
	}
	if _, err := w.engine.AuditVerify(&model.Call{Organization: w.org.organization}); err != nil {
		t.Error(err)
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
		entries := get[[]AuditEntry](t, got)
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
	if past := get[[]AuditEntry](t, w.do(t, request{method: "GET", path: "/account/audit-logs?page=1000000000", key: w.org.full})); len(past) != 0 {
		t.Errorf("%d entries behind the last page", len(past))
	}
}
