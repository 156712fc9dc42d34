package recovery

import (
	"strconv"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BackupPin pins a completed backup, which then neither expires nor can be deleted, or unpins it. Pinning again
// replaces the reason.
func (s *Service) BackupPin(call *model.Call, database, id string, pinned bool, reason string) (model.Backup, error) {
	if !pinned && reason != "" {
		return model.Backup{}, model.Invalid("reason", "only goes with pinned true")
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Backup{}, err
	}
	if _, err := s.BackupGet(call, database, id); err != nil {
		return model.Backup{}, err
	}
	call.Note("pinned", strconv.FormatBool(pinned))
	err := s.core.Change(call, func(tx *meta.Tx) error {
		b, err := backupOf(tx, database, id)
		if err != nil {
			return err
		}
		if pinned {
			if err := mustBeCompleted(b, "pinned"); err != nil {
				return err
			}
		}
		return tx.Backups().Change(id, func(b *model.Backup) {
			now := s.core.Clock()
			if b.Pin != nil && !pinned {
				b.UnpinnedAt = &now
			}
			b.Pin = pin(b.Pin, pinned, reason, now)
		})
	})
	if err != nil {
		return model.Backup{}, err
	}
	return s.BackupGet(call, database, id)
}

// pin returns the new pin of a backup, given its current one.
func pin(was *model.Pin, pinned bool, reason string, now time.Time) *model.Pin {
	switch {
	case !pinned:
		return nil
	case was != nil:
		return &model.Pin{At: was.At, Reason: reason}
	default:
		return &model.Pin{At: now, Reason: reason}
	}
}
