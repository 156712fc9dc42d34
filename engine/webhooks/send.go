package webhooks

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// idle is the longest wait for the next delivery that is due.
	idle = time.Minute
	// unrecordedPause is how long a delivery rests whose outcome could not be recorded.
	unrecordedPause = time.Minute
)

// sendDue begins the attempts that are due, and returns how long it is until the next one. A read-only appliance
// sends nothing: the one that has taken over does.
func (s *Service) sendDue(ctx context.Context) time.Duration {
	if s.core.ReadOnly() != nil {
		return idle
	}
	var due []model.Delivery
	var next time.Time
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		due, next = tx.DueDeliveries(s.core.Clock(), s.longestDelay(), s.slots.free, s.slots.busy)
		return nil
	}); err != nil {
		s.core.Log.Error("look for deliveries of webhooks", "error", err)
	}
	for _, d := range due {
		if s.slots.take(d) {
			s.sending.Go(func() {
				defer s.slots.release(d)
				s.send(ctx, d)
			})
		}
	}
	if next.IsZero() {
		return idle
	}
	return min(idle, max(0, next.Sub(s.core.Clock())))
}

// send makes one attempt and records how it ended.
func (s *Service) send(ctx context.Context, d model.Delivery) {
	t, err := s.targetOf(d)
	status := 0
	if err == nil {
		status, err = t.post(ctx, d.Event, s.core.Clock())
	}
	if ctx.Err() != nil {
		return // not an attempt: the next start makes it
	}
	if err := s.record(d, t.url, status, err); err != nil {
		s.core.Log.Error("record a webhook's delivery", "delivery", d.ID, "error", err)
		select {
		case <-time.After(unrecordedPause):
		case <-ctx.Done():
		}
	}
}

// record records the outcome of an attempt that was sent to a URL. A delivery that was requested again meanwhile stays
// pending.
func (s *Service) record(d model.Delivery, url string, status int, cause error) error {
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		over := status == http.StatusGone || errors.Is(cause, errNoReceiver)
		if over {
			var err error
			if over, err = s.concludeWebhook(tx, d.Webhook, url); err != nil {
				return err
			}
		}
		requested := d.NextAt
		_, err := tx.UpdateDelivery(d.ID, func(d *model.Delivery) error {
			now := s.core.Clock()
			d.Attempts++
			d.LastAttemptAt, d.LastStatus, d.LastError = &now, status, shown(cause)
			if d.NextAt.Equal(requested) {
				s.conclude(d, cause == nil, over)
			}
			return nil
		})
		return err
	})
	if errors.Is(err, meta.ErrNotFound) { // the webhook was deleted meanwhile
		return nil
	}
	if err == nil && cause != nil {
		s.core.Log.Warn("a webhook's delivery failed", "webhook", d.Webhook, "delivery", d.ID, "event", d.Event.ID, "status", status, "error", cause)
	}
	return err
}

// conclude sets what follows an attempt: the end of the delivery, or another attempt.
func (s *Service) conclude(d *model.Delivery, arrived, over bool) {
	d.Tries++
	switch {
	case arrived:
		d.Status, d.CompletedAt = model.DeliveryDelivered, d.LastAttemptAt
	case over || d.Tries > len(s.Delays):
		d.Status, d.CompletedAt = model.DeliveryFailed, d.LastAttemptAt
	default:
		d.NextAt = d.LastAttemptAt.Add(jitter(s.Delays[d.Tries-1]))
	}
}

// jitterShare is the largest share of a delay by which jitter changes it.
const jitterShare = 0.2

// jitter returns a duration within a fifth of d.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitterShare + 2*jitterShare*rand.Float64()))
}

// longestDelay returns the longest time between two attempts.
func (s *Service) longestDelay() time.Duration {
	longest := time.Duration(0)
	for _, d := range s.Delays {
		longest = max(longest, d)
	}
	return time.Duration(float64(longest) * (1 + jitterShare))
}

// concludeWebhook disables a webhook whose receiver wants no more requests, and reports whether none are to follow: a
// webhook that has another URL by now has another receiver.
func (s *Service) concludeWebhook(tx *meta.Tx, id, url string) (over bool, err error) {
	w, err := tx.Webhooks().Get(id)
	switch {
	case err != nil || !w.Enabled: // deleted, damaged, disabled, or the operator's
		return true, nil
	case w.URL != url:
		return false, nil
	}
	return true, tx.Webhooks().Change(id, func(w *model.Webhook) {
		w.Enabled, w.DisabledReason, w.UpdatedAt = false, "the receiver answered 410 Gone", s.core.Clock()
	})
}
