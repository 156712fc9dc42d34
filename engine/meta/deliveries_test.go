package meta

import (
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestDeliveryOfAClockAhead: a delivery further ahead than any delay was postponed by a wrong clock, and is due. Others wait.
func TestDeliveryOfAClockAhead(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	update(t, db, func(tx *Tx) error {
		for id, ahead := range map[string]time.Duration{"a": time.Hour, "b": 10 * 365 * 24 * time.Hour, "c": 0, "d": 50 * time.Minute} {
			if err := tx.Deliveries().Insert(model.Delivery{
				ID: id, Organization: "org_1", Webhook: "wh_1", Status: model.DeliveryPending, NextAt: now.Add(ahead),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, db, func(tx *Tx) error {
		due, next := tx.DueDeliveries(now, time.Hour, func(string) int { return 10 }, func(string) bool { return false })
		var ids []string
		for _, d := range due {
			ids = append(ids, d.ID)
		}
		if !slices.Equal(ids, []string{"c", "b"}) || !next.Equal(now.Add(50*time.Minute)) {
			t.Errorf("%v are due, and the next at %v", ids, next)
		}
		return nil
	})
}
