package engine

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// Whoever has a revoked key or a download link leaves a bounded number of
// entries in the log, and the number of those that are not there.
func TestAuditOfAFlood(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	text, key, err := a.Access.KeyCreate(a.call(model.ActionKeyCreate), access.NewKey{Name: "stolen", Scopes: model.Scopes()})
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
	by.Add(int64(core.AuditFoldWindow))
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		action model.Action
		want   int
		rest   string
	}{
		{model.ActionDatabaseList, core.FoldKey + 1, strconv.Itoa(requests - core.FoldKey - 1)},
		{model.ActionObjectDownload, core.FoldSignedAddress + 1, strconv.Itoa(requests - core.FoldSignedAddress - 1)},
		{model.ActionObjectDamaged, core.FoldAnybodyAddress + 1, strconv.Itoa(requests - core.FoldAnybodyAddress - 1)},
		{model.ActionKeyList, requests, ""},
	} {
		var entries []model.AuditEntry
		within(t, 10*time.Second, "the entries of "+string(tt.action), func() bool {
			entries = nil
			for page, more := 1, true; more; page++ {
				var part []model.AuditEntry
				var err error
				if part, more, err = a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{Action: string(tt.action)}, page, 100); err != nil {
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

// However many addresses, buckets and organizations' objects are named, what
// anybody can add to a log in a minute, and what is noted of it, is bounded.
func TestAuditFoldIsBounded(t *testing.T) {
	t.Parallel()
	f, now := core.NewAuditFold(), time.Now()
	written := 0
	for n := range 100_000 {
		call := &model.Call{
			Operation: model.Operation{Action: model.ActionObjectDownload}, Actor: model.Anybody(), Organization: "org_1",
			Resource: objects.ObjectResource(fmt.Sprintf("bucket_%d", n%300), fmt.Sprint(n)), IP: fmt.Sprintf("2001:db8:0:%x::1", n),
		}
		written += len(f.Admit(&model.AuditEntry{At: now, Organization: "org_1"}, core.AuditBounds(call, nil)))
	}
	if written > core.FoldAnybody || len(f.Sources) > 3*core.FoldAnybody {
		t.Errorf("%d entries are written, %d sources are noted", written, len(f.Sources))
	}
	if rest := f.End(); len(rest) != 1 || rest[0].Details["not_logged"] != strconv.Itoa(100_000-core.FoldAnybody-1) {
		t.Errorf("at the end: %d entries, %v", len(rest), rest)
	}
}

// Two addresses of one IPv6 network are one requester.
func TestAuditFoldByNetwork(t *testing.T) {
	t.Parallel()
	f, written := core.NewAuditFold(), 0
	for n := range 50 {
		call := &model.Call{Actor: model.DownloadLink(), Organization: "org_1", IP: fmt.Sprintf("2001:db8::%x", n)}
		written += len(f.Admit(&model.AuditEntry{}, core.AuditBounds(call, nil)))
	}
	if written != core.FoldSignedAddress {
		t.Errorf("%d entries of one network", written)
	}
}
