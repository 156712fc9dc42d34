package engine

import (
	"strconv"
	"testing"
	"time"

	"holdfast/engine/model"
)

// Whoever has a revoked key or a download link leaves a bounded number of
// entries in the log, and the number of those that are not there.
func TestAuditOfAFlood(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	text, key, err := a.KeyCreate(a.call(model.ActionKeyCreate), NewKey{Name: "stolen", Scopes: model.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.KeyRevoke(a.call(model.ActionKeyRevoke), key.ID); err != nil {
		t.Fatal(err)
	}
	const requests = 500
	link := model.Actor{Type: model.ActorSystem, Name: "download link"}
	for range requests {
		call := &model.Call{Operation: model.Operation{Action: model.ActionDatabaseList}, Actor: model.Actor{Type: model.ActorKey}}
		err := a.Authenticate(call, text.Reveal())
		if model.CodeOf(err) != model.CodeUnauthorized {
			t.Fatalf("with a revoked key: %v", err)
		}
		a.Finish(call, err)
		a.Finish(&model.Call{Operation: model.Operation{Action: model.ActionObjectDownload}, Actor: link, Organization: a.org}, nil)
		a.Finish(a.call(model.ActionKeyList), nil)
	}
	by.Add(int64(auditFoldWindow))
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		action model.Action
		want   int
		rest   string
	}{
		{model.ActionDatabaseList, auditFoldLimit + 1, strconv.Itoa(requests - auditFoldLimit - 1)},
		{model.ActionObjectDownload, auditFoldLimit + 1, strconv.Itoa(requests - auditFoldLimit - 1)},
		{model.ActionKeyList, requests, ""},
	} {
		var entries []model.AuditEntry
		within(t, 10*time.Second, "the entries of "+string(tt.action), func() bool {
			entries = nil
			for page, more := 1, true; more; page++ {
				var part []model.AuditEntry
				var err error
				if part, more, err = a.AuditList(a.call(model.ActionAuditList), AuditFilter{Action: string(tt.action)}, page, 100); err != nil {
					t.Fatal(err)
				}
				entries = append(entries, part...)
			}
			return len(entries) >= tt.want
		})
		if len(entries) != tt.want || entries[0].Details["not_logged"] != tt.rest {
			t.Errorf("%s: %d entries, the newest %+v", tt.action, len(entries), entries[0])
		}
	}
}
