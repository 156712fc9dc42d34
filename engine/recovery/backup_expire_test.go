package recovery

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// A good backup expires once the next good one is as old as the retention; damaged and failed ones expire by their age.
func TestExpiry(t *testing.T) {
	t.Parallel()
	const day, retention = 24 * time.Hour, 7 * 24 * time.Hour
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(days int) *time.Time { return new(start.Add(time.Duration(days) * day)) }
	backup := func(id string, days int, change func(*model.Backup)) model.Backup {
		b := model.Backup{ID: id, Status: model.BackupCompleted, CompletedAt: at(days)}
		if change != nil {
			change(&b)
		}
		return b
	}
	damaged := func(b *model.Backup) { b.Verification.Status = model.VerificationFailed }
	all := []model.Backup{ // newest first
		backup("running", 60, func(b *model.Backup) { b.Status, b.CompletedAt = model.BackupRunning, nil }),
		backup("damaged, newest", 50, damaged),
		backup("newest good", 40, nil),
		backup("being deleted", 35, func(b *model.Backup) { b.DeletionPending = true }),
		backup("unpinned long after", 30, func(b *model.Backup) { b.UnpinnedAt = at(45) }),
		backup("failed", 25, func(b *model.Backup) { b.Status = model.BackupFailed }),
		backup("damaged", 20, damaged),
		backup("pinned", 10, func(b *model.Backup) { b.Pin = &model.Pin{} }),
		backup("oldest", 0, nil),
	}
	want := map[string]*time.Time{
		"damaged, newest": at(57), "being deleted": at(42), "unpinned long after": at(52), "failed": at(32), "damaged": at(27), "oldest": at(17),
	}
	for _, b := range all {
		got := expiry(b, retention, followedAt(all))
		if w := want[b.ID]; (got == nil) != (w == nil) || got != nil && !got.Equal(*w) {
			t.Errorf("%s: %v, want %v", b.ID, got, w)
		}
		if expiry(b, 0, followedAt(all)) != nil {
			t.Errorf("%s expires although all are kept", b.ID)
		}
	}
	only := []model.Backup{backup("damaged, newest", 9, damaged), backup("damaged", 1, damaged)}
	if expiry(only[0], retention, followedAt(only)) != nil || expiry(only[1], retention, followedAt(only)) == nil {
		t.Error("of damaged ones only, the newest expires or the others stay")
	}
}
