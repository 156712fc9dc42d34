package offsite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
)

const (
	// watchInterval is how often the lag is compared with alarmLag.
	watchInterval = 10 * time.Second
	// alarmLag is the lag that the operator is told of.
	alarmLag = 5 * time.Minute
	// verifyInterval is between two verifications of a sample, verifyShare of the files.
	verifyInterval = 24 * time.Hour
	verifyShare    = 0.02
	// lockInterval is between two extensions of locks.
	lockInterval = 12 * time.Hour
	// maxAffected bounds what a message lists.
	maxAffected = 5
)

// watch tells the operator when the copy falls behind.
func (s *Service) watch(ctx context.Context) {
	behind := false
	for wait(ctx, watchInterval) {
		st := s.Status()
		late := st.Lag > alarmLag && st.State != model.OffsiteFenced
		if late && !behind {
			s.core.Emit(model.Event{Type: model.EventOffsiteBehind, Message: lateMessage(st)})
		}
		behind = late
	}
}

func lateMessage(st Status) string {
	message := fmt.Sprintf("The copy off-site is %s behind.", st.Lag.Round(time.Minute))
	if st.Problem != "" {
		message += " Copying makes no progress: " + st.Problem + "."
	}
	return message
}

// verifyDaily reads back a sample of what the store has.
func (s *Service) verifyDaily(ctx context.Context, c *connection) {
	for wait(ctx, time.Minute) {
		now := s.core.WallClock()
		s.mu.Lock()
		last := s.state.Verified
		s.mu.Unlock()
		if last != nil && !core.IsPast(now, last.At, verifyInterval) {
			continue
		}
		o := VerifyOptions{Share: verifyShare, Since: now.Add(-verifyInterval)}
		if last != nil && len(last.Damage) > 0 { // a sample without what was damaged would look like a good copy
			o.Since, o.Again = time.Time{}, last.Damage
		}
		v, err := c.verify(ctx, now, o)
		if err == nil {
			err = s.verified(v)
		}
		if err != nil && ctx.Err() == nil {
			s.core.Log.Warn("verify the off-site copy", "error", err)
		}
	}
}

// verified records a verification and tells the operator of damage.
func (s *Service) verified(v Verified) error {
	if err := v.Err(); err != nil {
		s.core.Log.Error("the off-site copy is damaged", "objects", v.Damage, "error", err)
		s.core.Emit(model.Event{
			Type: model.EventOffsiteDamaged, Message: damageMessage(v),
		})
	}
	return s.setState(func(state *State) { state.Verified = &v })
}

func damageMessage(v Verified) string {
	message := "The copy off-site is damaged: " + model.Count(int64(len(v.Damage)), "object") + " cannot be read"
	if affected := v.Affected(); len(affected) > 0 {
		message += ": " + strings.Join(affected[:min(len(affected), maxAffected)], ", ")
	}
	return message + ". " + model.OffsiteDamage(v.Point != nil)
}

// extendLocks keeps what recoveries need locked, where the bucket has Object Lock.
func (s *Service) extendLocks(ctx context.Context, c *connection, o stream.Options) {
	if o.Lock == "" {
		return
	}
	for wait(ctx, time.Minute); ctx.Err() == nil; wait(ctx, lockInterval) {
		now := s.core.Clock()
		if _, err := c.repository.ExtendLocks(ctx, now, now.Add(-o.Retention), o.Lock, o.Retention); err != nil && ctx.Err() == nil {
			s.core.Log.Warn("extend the locks of the off-site copy", "error", err)
		}
	}
}

// wait waits, and reports whether ctx lasts.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
