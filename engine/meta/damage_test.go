package meta

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
)

// damageRecord changes a byte of a stored record.
func damageRecord(t *testing.T, db *DB, table, id string) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		b := tx.bolt.Bucket([]byte(table))
		data := append([]byte(nil), b.Get([]byte(id))...)
		data[len(data)-2] ^= 1
		return b.Put([]byte(id), data)
	})
}

// TestDamageIsSkipped: a damaged record fails no change that is not about it, holds up no
// delivery, is reported once, and can be dropped with all that is known of it.
func TestDamageIsSkipped(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	committed := recordingEvents(t, db, false)
	happen := func() {
		t.Helper()
		update(t, db, func(tx *Tx) error {
			return tx.RecordEvent(model.Event{Type: model.EventKeyCreated, Organization: "org_1"})
		})
	}
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Webhooks().Insert(model.Webhook{ID: "wh_1", Organization: "org_1", Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes()}),
			tx.Webhooks().Insert(model.Webhook{ID: "wh_2", Organization: "org_1", Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes()}),
			tx.Databases().Insert(model.Database{ID: "db_1", Organization: "org_1", Project: "p", Name: "shop"}),
			tx.Backups().Insert(model.Backup{ID: "bkp_1", Organization: "org_1", Database: "db_1"}),
			tx.Operations().Insert(model.DatabaseOperation{ID: "op_1", Organization: "org_1", Database: "db_1", Type: model.OperationBackup, Backup: "bkp_1"}))
	})
	happen()
	var deliveries, events []string
	view(t, db, func(tx *Tx) error {
		deliveries = tx.Deliveries().OldestIDs(ByWebhook, Key("wh_1"), math.MaxInt)
		events = tx.Events().OldestIDs(ByOrganization, Key("org_1"), math.MaxInt)
		return nil
	})
	damaged := []DamagedRecord{
		{"databases", "db_1"}, {"backups", "bkp_1"}, {"webhooks", "wh_1"}, {"deliveries", deliveries[0]}, {"events", events[0]},
	}
	for _, r := range damaged {
		damageRecord(t, db, r.Table, r.ID)
	}
	committed()
	happen()
	update(t, db, func(tx *Tx) error {
		return tx.Operations().Change("op_1", func(o *model.DatabaseOperation) { o.Status = model.OperationFailed })
	})
	if got := committed(); !slices.Equal(got, []string{"key.created", "backup.failed"}) {
		t.Errorf("beside damage: %v", got)
	}
	view(t, db, func(tx *Tx) error {
		due, _ := tx.DueDeliveries(time.Unix(1_900_000_000, 0), time.Hour, func(string) int { return 10 }, func(string) bool { return false })
		if len(due) < 3 || slices.ContainsFunc(due, func(d model.Delivery) bool { return d.ID == deliveries[0] }) {
			t.Errorf("%d deliveries are due beside a damaged one", len(due))
		}
		if got := tx.Events().Oldest(ByOrganization, Key("org_1"), "", 1); len(got) != 1 || got[0].ID == events[0] {
			t.Errorf("the oldest event beside a damaged one: %v", got)
		}
		return nil
	})
	got := db.Damaged()
	for _, r := range damaged {
		if !slices.Contains(got, r) {
			t.Errorf("%v is not reported: %v", r, got)
		}
	}
	happen()
	if again := db.Damaged(); len(again) > 0 {
		t.Errorf("%v is reported again", again)
	}
	db.Redamaged(damaged[0])
	if again := db.Damaged(); len(again) != 1 || again[0] != damaged[0] {
		t.Errorf("after a failed removal of %v, %v is reported", damaged[0], again)
	}
	for _, r := range damaged {
		dropped, err := Value(db.Update, func(tx *Tx) (bool, error) { return tx.DropDamaged(r) })
		if want := r.Table != "databases" && r.Table != "backups"; err != nil || dropped != want {
			t.Errorf("%v dropped: %v, %v", r, dropped, err)
		}
		if again, err := Value(db.Update, func(tx *Tx) (bool, error) { return tx.DropDamaged(r) }); err != nil || again {
			t.Errorf("%v dropped twice: %v", r, err)
		}
	}
	damageRecord(t, db, "databases", "db_1") // undone, for the checker
	damageRecord(t, db, "backups", "bkp_1")
}

// TestBoundsDropDamage: the oldest event and delivery give way to new ones, whatever is left of them.
func TestBoundsDropDamage(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	recordingEvents(t, db, false)
	update(t, db, func(tx *Tx) error {
		return tx.Webhooks().Insert(model.Webhook{ID: "wh_1", Organization: "org_1", Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes()})
	})
	happen := func(n int) {
		t.Helper()
		update(t, db, func(tx *Tx) (err error) {
			for range n {
				err = errors.Join(err, tx.RecordEvent(model.Event{Type: model.EventKeyCreated, Organization: "org_1"}))
			}
			return err
		})
	}
	happen(model.MaxEvents)
	var event string
	view(t, db, func(tx *Tx) error {
		event = tx.Events().OldestIDs(ByOrganization, Key("org_1"), 1)[0]
		return nil
	})
	damageRecord(t, db, "events", event)
	update(t, db, func(tx *Tx) error { // pending ones are not dropped
		oldest := tx.Deliveries().OldestIDs(ByWebhook, Key("wh_1"), 1)[0]
		_, err := tx.UpdateDelivery(oldest, func(d *model.Delivery) error { d.Status = model.DeliveryDelivered; return nil })
		return err
	})
	happen(1)
	view(t, db, func(tx *Tx) error {
		totals, err := tx.Totals("org_1")
		if _, damaged := tx.Events().Get(event); damaged == nil || totals.Events != model.MaxEvents || totals.Deliveries != model.MaxDeliveries {
			t.Errorf("%+v", totals)
		}
		return err
	})
}
