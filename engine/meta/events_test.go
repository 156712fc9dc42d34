package meta

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
)

// recordingEvents makes a store record events, and returns those that were committed.
func recordingEvents(t *testing.T, db *DB, operator bool) (committed func() []string) {
	t.Helper()
	number := 0
	var all []string
	at := time.Unix(1_800_000_000, 0).UTC()
	next := func(prefix string) string { number++; return fmt.Sprintf("%s%09d", prefix, number) }
	db.RecordEvents(EventSource{
		Stamp: func() (string, time.Time) { return next("event_"), at }, DeliveryID: func() string { return next("dlv_") },
		Operator: operator, Committed: func(e model.Event) { all = append(all, string(e.Type)) },
	})
	return func() []string { defer func() { all = nil }(); return all }
}

// TestEventsOfChanges: what changes a record is an event, in the same transaction; what only touches it is none.
func TestEventsOfChanges(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	committed := recordingEvents(t, db, false)
	now := time.Unix(1_800_000_000, 0).UTC()
	step := func(want string, change func(tx *Tx) error) {
		t.Helper()
		update(t, db, change)
		if got := strings.Join(committed(), " "); got != want {
			t.Errorf("the events are %q, want %q", got, want)
		}
	}
	database := func(change func(*model.Database)) func(*Tx) error {
		return func(tx *Tx) error { return tx.Databases().Change("db_1", change) }
	}
	operation := func(change func(*model.DatabaseOperation)) func(*Tx) error {
		return func(tx *Tx) error { return tx.Operations().Change("op_1", change) }
	}
	key := func(change func(*model.Key)) func(*Tx) error {
		return func(tx *Tx) error { return tx.Keys().Change("key_1", change) }
	}
	step("", func(tx *Tx) error {
		return tx.Databases().Insert(model.Database{ID: "db_1", Organization: "org_1", Project: "p", Name: "shop", Status: model.DatabaseCreating, Settings: map[string]string{"a": "1"}})
	})
	step("database.created", database(func(d *model.Database) { d.Status = model.DatabaseAvailable }))
	step("database.updated", database(func(d *model.Database) { d.Settings["a"] = "2" })) // in place
	step("database.password_rotated", database(func(d *model.Database) { d.OwnerPassword = []byte("x") }))
	step("", database(func(d *model.Database) { d.Status, d.UpdatedAt = model.DatabaseUnavailable, now }))
	step("backup.started", func(tx *Tx) error {
		return errors.Join(tx.Backups().Insert(model.Backup{ID: "bkp_1", Organization: "org_1", Database: "db_1"}),
			tx.Operations().Insert(model.DatabaseOperation{ID: "op_1", Organization: "org_1", Database: "db_1", Type: model.OperationBackup, Backup: "bkp_1", Status: model.OperationPending}))
	})
	step("", operation(func(o *model.DatabaseOperation) { o.Status, o.Phase = model.OperationRunning, "copying" }))
	step("backup.interrupted", func(tx *Tx) error {
		return errors.Join(tx.Backups().Change("bkp_1", func(b *model.Backup) { b.Status, b.Cut = model.BackupFailed, true }),
			operation(func(o *model.DatabaseOperation) { o.Status, o.CompletedAt = model.OperationFailed, &now })(tx))
	})
	step("", operation(func(o *model.DatabaseOperation) { o.Phase = "over" }))
	step("backup.verified", func(tx *Tx) error {
		return tx.Backups().Change("bkp_1", func(b *model.Backup) { b.Verification.Status = model.VerificationVerified })
	})
	step("backup.deleted", func(tx *Tx) error {
		return tx.Backups().Change("bkp_1", func(b *model.Backup) { b.DeletionPending = true })
	})
	step("import.completed database.created", func(tx *Tx) error {
		return tx.Operations().Insert(model.DatabaseOperation{ID: "op_2", Organization: "org_1", Database: "db_1", Type: model.OperationImport, Status: model.OperationCompleted})
	})
	step("database.deleted", database(func(d *model.Database) { d.Trash = &model.Trash{} }))
	step("database.undeleted", database(func(d *model.Database) { d.Trash = nil }))
	step("database.deleted database.purged", func(tx *Tx) error {
		return errors.Join(database(func(d *model.Database) { d.Trash = &model.Trash{} })(tx), tx.Databases().Delete("db_1"))
	})
	step("key.created", func(tx *Tx) error {
		return tx.Keys().Insert(model.Key{ID: "key_1", Organization: "org_1", Hash: []byte("h")})
	})
	step("", key(func(k *model.Key) { k.LastUsedAt = &now }))
	step("key.updated", key(func(k *model.Key) { k.AllowDangerous = true }))
	step("key.updated", key(func(k *model.Key) { k.ExpiresAt = new(time.Now()) }))
	step("key.updated", key(func(k *model.Key) { k.ExpiresAt = nil }))
	step("key.revoked", key(func(k *model.Key) { k.RevokedAt = &now }))
	step("", func(tx *Tx) error {
		return tx.Databases().Insert(model.Database{ID: "db_2", Project: "p", Organization: "org_1", Name: "box", Sandbox: true, Status: model.DatabaseCreating})
	})
	step("", func(tx *Tx) error {
		return tx.Databases().Change("db_2", func(d *model.Database) { d.Status = model.DatabaseAvailable })
	})
	refused := errors.New("refused")
	if err := db.Update(func(tx *Tx) error { return errors.Join(key(func(k *model.Key) { k.Name = "n" })(tx), refused) }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if got := committed(); len(got) != 0 {
		t.Errorf("what was not committed is told: %v", got)
	}
}

// TestDeliveries: an event gets a delivery for each webhook that selects it, within the bounds.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	recordingEvents(t, db, true)
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Webhooks().Insert(model.Webhook{ID: "wh_1", Organization: "org_1", Enabled: true, Events: []string{"backup.*"}, Scopes: model.EventScopes()}),
			tx.Webhooks().Insert(model.Webhook{ID: "wh_2", Organization: "org_1", Enabled: false, Events: []string{"*"}, Scopes: model.EventScopes()}),
			tx.Webhooks().Insert(model.Webhook{ID: "wh_3", Organization: "org_2", Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes()}))
	})
	happen := func(n int, t model.EventType) func(*Tx) error {
		return func(tx *Tx) (err error) {
			for range n {
				err = errors.Join(err, tx.RecordEvent(model.Event{Type: t, Organization: "org_1"}))
			}
			return err
		}
	}
	update(t, db, happen(1, model.EventKeyCreated))
	update(t, db, happen(1, model.EventBackupFailed))
	due := func() (webhooks []string) {
		view(t, db, func(tx *Tx) error {
			found, _ := tx.DueDeliveries(time.Unix(1_900_000_000, 0), time.Hour, func(string) int { return 1 }, func(string) bool { return false })
			for _, d := range found {
				webhooks = append(webhooks, d.Webhook)
			}
			return nil
		})
		return webhooks
	}
	if got := due(); !slices.Equal(got, []string{"operator", "wh_1"}) {
		t.Errorf("%v are due", got)
	}
	update(t, db, happen(model.MaxDeliveries+10, model.EventBackupCompleted))
	update(t, db, happen(model.MaxEvents, model.EventKeyRevoked))
	view(t, db, func(tx *Tx) error {
		totals, err := tx.Totals("org_1")
		if want := (model.Totals{Events: model.MaxEvents, Deliveries: model.MaxDeliveries, Pending: model.MaxPendingDeliveries}); totals != want {
			t.Errorf("%+v, want %+v", totals, want)
		}
		return err
	})
}

// TestWakeUps: who follows events is woken by events, not by what becomes of their deliveries.
func TestWakeUps(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	recordingEvents(t, db, false)
	update(t, db, func(tx *Tx) error {
		return tx.Webhooks().Insert(model.Webhook{ID: "wh_1", Organization: "org_1", Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes()})
	})
	woken := func(change func(tx *Tx) error) (events, deliveries bool) {
		t.Helper()
		happened, changed := db.Happened(), db.DeliveriesChanged()
		update(t, db, change)
		is := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		return is(happened), is(changed)
	}
	record := func(organization string) func(*Tx) error {
		return func(tx *Tx) error {
			return tx.RecordEvent(model.Event{Type: model.EventBackupFailed, Organization: organization})
		}
	}
	if events, deliveries := woken(record("org_1")); !events || !deliveries {
		t.Errorf("by an event with a delivery: %v %v", events, deliveries)
	}
	if events, deliveries := woken(record("org_2")); !events || deliveries {
		t.Errorf("by an event without: %v %v", events, deliveries)
	}
	if events, deliveries := woken(func(tx *Tx) error {
		_, err := tx.UpdateDelivery(tx.Deliveries().OldestIDs(ByWebhook, Key("wh_1"), 1)[0], func(d *model.Delivery) error { d.Attempts++; return nil })
		return err
	}); events || !deliveries {
		t.Errorf("by an attempt: %v %v", events, deliveries)
	}
}
