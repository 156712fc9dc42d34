package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// Expiries are audited as the appliance's actions, once each.
func TestExpiriesAreAudited(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	var ahead atomic.Int64
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	a := startEngineOn(t, cfg)
	_, key, err := a.Access.KeyCreate(a.operatorCall(model.ActionKeyCreate), access.NewKey{
		Name: "short", Preset: model.PresetReadOnly, ExpiresIn: 30 * time.Minute, Source: model.KeySourceOperator,
	})
	if err != nil {
		t.Fatal(err)
	}
	db, _ := a.createDatabase(t, "shop")
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(2 * time.Hour)) // the trash is kept for one hour
	for range 2 {
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := a.audited(t, model.ActionTrashExpire); n != 1 { // together with the removal of the record, not later
			t.Errorf("the end of the database was audited %d times", n)
		}
	}
	a.awaitAudit(t, model.ActionTrashExpire, db.ID)
	a.awaitAudit(t, model.ActionKeyExpire, key.ID)
	for _, action := range []model.Action{model.ActionTrashExpire, model.ActionKeyExpire} {
		if n := a.audited(t, action); n != 1 {
			t.Errorf("%s was audited %d times", action, n)
		}
	}
}

// Entries older than the operator's retention period are removed, and the hash chain stays valid.
func TestAuditRetention(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, t.TempDir())
	var ahead atomic.Int64
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	cfg.AuditRetention = 24 * time.Hour
	a := openEngine(t, cfg)
	create := func(name string) {
		if _, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	create("old")
	ahead.Store(int64(25 * time.Hour))
	believe(a.Engine)
	create("new")
	if err := a.Core.PruneAudits(); err != nil {
		t.Fatal(err)
	}
	entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{}, 1, core.MaxLimit)
	if err != nil || len(entries) != 1 || entries[0].Resource.Name != "new" {
		t.Errorf("kept %+v, %v", entries, err)
	}
	if v, err := a.Core.AuditVerify(a.call(model.ActionAuditVerify)); err != nil || v.Entries != 1 || len(v.Faults) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
}
