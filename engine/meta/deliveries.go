package meta

import (
	"bytes"
	"encoding/binary"
	"time"

	"holdfast/engine/model"
)

// Deliveries are indexed ByWebhook; those that are pending also ByDue, by organization,
// webhook and time, and the others ByOrganization.
func (tx *Tx) Deliveries() Table[model.Delivery] {
	pending := func(d *model.Delivery) bool { return d.Status == model.DeliveryPending }
	ended := func(d *model.Delivery) bool { return !pending(d) }
	t := table(tx, deliveriesTable, func(d *model.Delivery) string { return d.ID },
		by(ByOrganization, keyIf(ended, func(d *model.Delivery) []byte { return Key(d.Organization) })),
		by(ByWebhook, func(d *model.Delivery) []byte { return Key(d.Webhook) }),
		by(ByDue, keyIf(pending, func(d *model.Delivery) []byte {
			return append(Key(d.Organization, d.Webhook, ""), DeletionKey(d.NextAt)...)
		})))
	t.tally = func(d *model.Delivery) (string, model.Totals) {
		counts := model.Totals{Deliveries: 1}
		if pending(d) {
			counts.Pending = 1
		}
		return deliveryOwner(d), counts
	}
	t.salvage = func(keys map[string][]byte) model.Delivery {
		if due := keys[ByDue]; due != nil {
			return model.Delivery{Organization: keyPart(due, 0), Status: model.DeliveryPending}
		}
		return model.Delivery{Organization: keyPart(keys[ByOrganization], 0)}
	}
	return t
}

// UpdateDelivery changes a delivery, and wakes who waits for deliveries that are due.
func (tx *Tx) UpdateDelivery(id string, change func(*model.Delivery) error) (model.Delivery, error) {
	tx.OnCommit(tx.wakes.deliveries.signal)
	return tx.Deliveries().Update(id, change)
}

// DueDeliveries returns the pending deliveries whose time has come, by webhook and the
// oldest first, and when the next one of another is due, zero if there is none. One that is further ahead than longest was set
// by a wrong clock: it is due, too. It skips damaged ones. free returns how many of a webhook may be returned; skip reports those that are not wanted.
func (tx *Tx) DueDeliveries(now time.Time, longest time.Duration, free func(webhook string) int, skip func(id string) bool) (due []model.Delivery, next time.Time) {
	cursor := tx.Deliveries().indexBucket(ByDue).Cursor()
	k, id := cursor.First()
	for k != nil {
		organization, webhook := keyPart(k, 0), keyPart(k, 1)
		prefix := Key(organization, webhook, "")
		left := free(webhook)
		for left > 0 && bytes.HasPrefix(k, prefix) {
			at := time.Unix(0, int64(binary.BigEndian.Uint64(k[len(prefix):]))).UTC()
			if at.After(now) && at.Sub(now) <= longest {
				if next.IsZero() || at.Before(next) {
					next = at
				}
				k, id = cursor.Seek(append(Key(organization, webhook, ""), DeletionKey(now.Add(longest+1))...))
				continue
			}
			if !skip(string(id)) {
				if d, err := tx.Deliveries().indexed(ByDue, id); err == nil {
					due, left = append(due, d), left-1
				}
			}
			k, id = cursor.Next()
		}
		k, id = cursor.Seek(append(Key(organization, webhook), separator+1))
	}
	return due, next
}
