package recovery

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

func TestNextBackup(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	db := model.Database{ID: "db_01k6zv7r9pxa3c5n8m2q4t6w8y", CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	moment := lastScheduledTime(db.ID, day, now)
	if moment.After(now) || now.Sub(moment) >= day {
		t.Fatalf("the last moment before %s is %s", now, moment)
	}
	if again := lastScheduledTime(db.ID, day, now.Add(3*day)); !again.Equal(moment.Add(3 * day)) {
		t.Errorf("three days later it is %s, not the same time of the day as %s", again, moment)
	}
	backup := func(status model.BackupStatus, at time.Time) *model.Backup {
		return &model.Backup{Status: status, StartedAt: at}
	}
	for name, c := range map[string]struct {
		last *model.Backup
		want time.Time
	}{
		"none yet":                 {nil, db.CreatedAt.Add(firstBackupDelay)},
		"since the moment":         {backup(model.BackupCompleted, moment.Add(time.Minute)), moment.Add(day)},
		"running":                  {backup(model.BackupRunning, moment), moment.Add(day)},
		"before the moment":        {backup(model.BackupCompleted, moment.Add(-time.Minute)), moment},
		"days ago":                 {backup(model.BackupCompleted, moment.Add(-5*day)), moment.Add(-4 * day)},
		"failed":                   {backup(model.BackupFailed, now), now.Add(backupRetry)},
		"failed, the next is near": {backup(model.BackupFailed, moment.Add(day-time.Minute)), moment.Add(day)},
	} {
		if got := scheduledAfter(db, c.last, day, now); !got.Equal(c.want) {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}

// A backup that could not be made in its window is due after it, however long the appliance was off, and is made once.
func TestMissedWindowIsMadeUpFor(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	first := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC) // a Sunday
	for windowDay, next := range map[string]time.Time{model.EveryDay: first.Add(day), "sunday": first.Add(7 * day)} {
		window, err := model.NewMaintenanceWindow("", windowDay, "03:00", 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, interval := range []time.Duration{time.Hour, day} {
			for n := range 20 { // the databases' own times within the interval differ
				db := model.Database{ID: core.FormatID(model.ResourceDatabase.Prefix(), ulid.Make()), CreatedAt: first.Add(-day), MaintenanceWindow: window}
				last := &model.Backup{Status: model.BackupCompleted, StartedAt: first.Add(time.Hour - time.Millisecond)}
				for _, now := range []time.Time{next.Add(2 * time.Hour), next.Add(20 * time.Hour), next.Add(30 * day).Add(9 * time.Hour)} {
					if due := dueAfter(db, last, interval, now); due.After(now) || due.Before(next) {
						t.Errorf("%s, every %s, database %d at %s: due at %s", window, interval, n, now, due)
					}
				}
				last.StartedAt = next.Add(2 * time.Hour)
				if due := dueAfter(db, last, interval, last.StartedAt.Add(time.Minute)); !due.After(last.StartedAt) || !window.Next(due).Equal(due) {
					t.Errorf("%s, every %s, database %d: after it, due at %s", window, interval, n, due)
				}
			}
		}
	}
}

// The scheduled times of databases are spread over the interval.
func TestMomentsAreSpread(t *testing.T) {
	t.Parallel()
	hours := map[int]int{}
	for range 240 {
		hours[lastScheduledTime(core.FormatID(model.ResourceDatabase.Prefix(), ulid.Make()), 24*time.Hour, time.Now()).Hour()]++
	}
	for hour, count := range hours {
		if count > 40 {
			t.Errorf("%d of 240 databases at %d o'clock", count, hour)
		}
	}
}

// A branch's first backup reads what it shares with its parent, so it is not made in the first minute.
func TestFirstBackupOfABranch(t *testing.T) {
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	db := model.Database{ID: "db_branch", Parent: "db_parent", CreatedAt: made}
	if got := scheduledAfter(db, nil, 6*time.Hour, made.Add(time.Hour)); !got.Equal(made.Add(6 * time.Hour)) {
		t.Errorf("due at %v", got)
	}
}
