package engine

import (
	"strconv"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// A revoked key, a download link and anonymous requests each leave a limited number of entries in the log, and the
// number of omitted ones.
func TestAuditOfAFlood(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	text, key, err := a.Access.KeyCreate(a.operatorCall(model.ActionKeyCreate), access.NewKey{Name: "stolen", Scopes: model.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Access.KeyRevoke(a.call(model.ActionKeyRevoke), key.ID); err != nil {
		t.Fatal(err)
	}
	const requests = 500
	for range requests {
		call := &model.Call{Operation: model.Operation{Action: model.ActionDatabaseList}, Actor: model.Actor{Type: model.ActorKey}}
		err := a.Access.Authenticate(call, text.Reveal())
		if model.CodeOf(err) != model.CodeUnauthorized {
			t.Fatalf("with a revoked key: %v", err)
		}
		a.Core.Finish(call, err)
		for action, actor := range map[model.Action]model.Actor{
			model.ActionObjectDownload: model.DownloadLink(), model.ActionObjectDamaged: model.Anybody(),
		} {
			a.Core.Finish(&model.Call{Operation: model.Operation{Action: action}, Actor: actor, Organization: a.org}, nil)
		}
		a.Core.Finish(a.call(model.ActionKeyList), nil)
	}
	by.Add(int64(time.Hour))
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for action, most := range map[model.Action]int{
		model.ActionDatabaseList: 100, model.ActionObjectDownload: 100, model.ActionObjectDamaged: 100, model.ActionKeyList: requests,
	} {
		var entries []model.AuditEntry
		testenv.Within(t, 10*time.Second, "the entries of "+string(action), func() bool {
			entries = nil
			for page, more := 1, true; more; page++ {
				var part []model.AuditEntry
				var err error
				if part, more, err = a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{Action: string(action)}, page, 100); err != nil {
					t.Fatal(err)
				}
				entries = append(entries, part...)
			}
			if len(entries) == 0 {
				return false
			}
			skipped, _ := strconv.Atoi(entries[0].Details["not_logged"])
			return len(entries)+skipped == requests
		})
		if len(entries) > most {
			t.Errorf("%s: %d entries", action, len(entries))
		}
	}
}
