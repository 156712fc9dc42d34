package meta

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/engine/model"
)

// BenchmarkDeliveries records an event for each of the most webhooks of an organization that has
// the most deliveries: the oldest of them are pending, the others ended.
func BenchmarkDeliveries(b *testing.B) {
	db := openTest(b)
	number, at := 0, time.Unix(1_800_000_000, 0).UTC()
	next := func(prefix string) string { number++; return fmt.Sprintf("%s%09d", prefix, number) }
	db.RecordEvents(EventSource{
		Stamp: func() (string, time.Time) { return next("event_"), at }, DeliveryID: func() string { return next("dlv_") },
		Committed: func(model.Event) {},
	})
	record := func(n int) {
		b.Helper()
		update(b, db, func(tx *Tx) (err error) {
			for range n {
				err = errors.Join(err, tx.RecordEvent(model.Event{
					Type: model.EventBackupCompleted, Organization: "org_1", Resource: model.Resource{Type: model.ResourceBackup, ID: "bkp_1", Name: "shop"},
					Message: "The backup of shop is complete.",
				}))
			}
			return err
		})
	}
	update(b, db, func(tx *Tx) (err error) {
		for range model.MaxWebhooks {
			err = errors.Join(err, tx.Webhooks().Insert(model.Webhook{
				ID: next("wh_"), Organization: "org_1", Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes(),
			}))
		}
		return err
	})
	record(model.MaxDeliveries / model.MaxWebhooks)
	b.ResetTimer()
	for b.Loop() {
		record(1)
	}
}
