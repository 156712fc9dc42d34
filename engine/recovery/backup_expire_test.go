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
		got := expiry(b, retention, followedAt(all, anyBackup))
		if w := want[b.ID]; (got == nil) != (w == nil) || got != nil && !got.Equal(*w) {
			t.Errorf("%s: %v, want %v", b.ID, got, w)
		}
		if expiry(b, 0, followedAt(all, anyBackup)) != nil {
			t.Errorf("%s expires although all are kept", b.ID)
		}
	}
	only := []model.Backup{backup("damaged, newest", 9, damaged), backup("damaged", 1, damaged)}
	if expiry(only[0], retention, followedAt(only, anyBackup)) != nil || expiry(only[1], retention, followedAt(only, anyBackup)) == nil {
		t.Error("of damaged ones only, the newest expires or the others stay")
	}
}

// The newest backup that leads to the present data stays, although a newer one is as old as the retention. One that was made
// while the clock was behind does not make the one before it expire.
func TestExpiryAcrossRestoreAndClock(t *testing.T) {
	t.Parallel()
	const day, retention = 24 * time.Hour, 7 * 24 * time.Hour
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	backup := func(id string, days int) model.Backup {
		return model.Backup{ID: id, Status: model.BackupCompleted, CompletedAt: new(start.Add(time.Duration(days) * day))}
	}
	restored := []model.Backup{backup("replaced", 3), backup("present", 2), backup("older", 1)}
	followed := followedAt(restored, func(b model.Backup) bool { return b.ID != "replaced" })
	for _, b := range restored {
		if stays, got := b.ID != "older", expiry(b, retention, followed); (got == nil) != stays {
			t.Errorf("%s expires at %v", b.ID, got)
		}
	}
	behind := []model.Backup{backup("behind", -3650), backup("before", 1)}
	if got := expiry(behind[1], retention, followedAt(behind, anyBackup)); got != nil {
		t.Errorf("the one before the clock was set back expires at %v", got)
	}
	behind = append([]model.Backup{backup("after", 5)}, behind...)
	for _, b := range behind[1:] {
		if got := expiry(b, retention, followedAt(behind, anyBackup)); got == nil || !got.Equal(start.Add(12*day)) {
			t.Errorf("%s expires at %v", b.ID, got)
		}
	}
}
