package api

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// TestDatabaseUpdate changes the properties of a database, restores their defaults, and sends bad values of each.
func TestDatabaseUpdate(t *testing.T) {
	w := start(t, func(c *core.Config) { c.BackupInterval = 1 << 60 })
	path := "/databases/" + w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`).ID
	patch := func(key, body, match string) reply {
		in := request{method: "PATCH", path: path, key: key, body: body, contentType: "application/json"}
		if match != "" {
			in.header = map[string]string{"If-Match": match}
		}
		return w.do(t, in)
	}
	tag := w.do(t, request{method: "GET", path: path, key: w.org.read}).header.Get("ETag")
	changed := patch(w.org.full, `{"name":"store","backup_every_seconds":3.6e3,"backup_retention_days":30,"connection_limit":5,`+
		`"maintenance_window":{"day":"sunday","start":"03:00","minutes":120}}`, tag)
	db := get[wire.Database](t, changed)
	if db.Name != "store" || db.DatabaseName != "store" || *db.BackupEverySeconds != 3600 || *db.BackupRetentionDays != 30 || *db.ConnectionLimit != 5 ||
		*db.MaintenanceWindow != (wire.MaintenanceWindow{Day: wire.Sunday, Start: "03:00", Minutes: 120}) {
		t.Errorf("%s", changed.text)
	}
	recovery := get[wire.Recovery](t, w.do(t, request{method: "GET", path: path + "/recovery", key: w.org.full}))
	if recovery.Schedule.EverySeconds != 3600 || recovery.Schedule.RetentionDays != 30 || recovery.Schedule.NextRunAt == nil {
		t.Errorf("%+v", recovery.Schedule)
	}
	if got := patch(w.org.full, `{"connection_limit":6}`, tag); got.status != 412 {
		t.Errorf("with the tag of before: %d %s", got.status, got.text)
	}
	for _, body := range []string{
		`{"name":"postgres"}`, `{"name":""}`, `{"backup_every_seconds":899}`, `{"backup_every_seconds":"1h"}`, `{"backup_retention_days":0}`,
		`{"connection_limit":0}`, `{"connection_limit":5000}`, `{"maintenance_window":{}}`, `{"maintenance_window":{"day":"","start":"03:00","minutes":60}}`,
		`{"maintenance_window":{"day":"monday","start":"3:00","minutes":60}}`, `{"maintenance_window":{"day":"monday","start":"03:00","minutes":9}}`,
		`{"color":"red"}`,
	} {
		if got := patch(w.org.full, body, ""); got.status != 422 {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
	if got := patch(w.org.read, `{"connection_limit":6}`, ""); got.status != 403 {
		t.Errorf("by a reader: %d", got.status)
	}
	if got := get[wire.Database](t, patch(w.org.full, `{}`, changed.header.Get("ETag"))); *got.ConnectionLimit != 5 || got.MaintenanceWindow == nil {
		t.Errorf("nothing was to change: %+v", got)
	}
	db = get[wire.Database](t, patch(w.org.full, `{"backup_every_seconds":null,"backup_retention_days":null,"connection_limit":null,"maintenance_window":null}`, ""))
	if db.Name != "store" || db.BackupEverySeconds != nil || db.BackupRetentionDays != nil || db.ConnectionLimit != nil || db.MaintenanceWindow != nil {
		t.Errorf("by default: %+v", db)
	}
	if got := w.do(t, request{method: "DELETE", path: path, key: w.org.full, header: map[string]string{"If-Match": tag}}); got.status != 412 {
		t.Errorf("the deletion of what it was: %d", got.status)
	}
}

// TestBranchExpiryNeedsWhatDeletingNeeds: a key that may not delete a database cannot have a branch deleted by its expiry either.
func TestBranchExpiryNeedsWhatDeletingNeeds(t *testing.T) {
	w := start(t)
	id := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"try"}`).ID
	if err := w.engine.Core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(id, func(d *model.Database) { d.Parent = "db_of_another_time" })
	}); err != nil {
		t.Fatal(err)
	}
	in := func(hours int) string {
		return fmt.Sprintf(`{"expires_at":%q}`, time.Now().Add(time.Duration(hours)*time.Hour).UTC().Format(time.RFC3339))
	}
	set := func(key, body string) reply {
		return w.do(t, request{method: "PATCH", path: "/databases/" + id, key: key, body: body})
	}
	refuse := func(body string) {
		t.Helper()
		for key, code := range map[string]model.Code{w.org.developer: model.CodeInsufficientScope, w.org.careful: model.CodeDangerousNotAllowed} {
			if got := set(key, body); got.status != 403 || got.code != string(code) {
				t.Errorf("%s: %d %s", body, got.status, got.text)
			}
		}
	}
	accept := func(key, body string) {
		t.Helper()
		if got := set(key, body); got.status != 200 {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
	refuse(in(1))
	accept(w.org.full, in(5))
	refuse(in(4))
	accept(w.org.developer, in(6))
	accept(w.org.careful, `{"expires_at":null}`)
	refuse(in(24 * 365))
}
