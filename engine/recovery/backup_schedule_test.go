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
		"days ago":                 {backup(model.BackupCompleted, moment.Add(-5*day)), moment},
		"failed":                   {backup(model.BackupFailed, now), now.Add(backupRetry)},
		"failed, the next is near": {backup(model.BackupFailed, moment.Add(day-time.Minute)), moment.Add(day)},
	} {
		if got := scheduledAfter(db, c.last, day, now); !got.Equal(c.want) {
			t.Errorf("%s: %s, not %s", name, got, c.want)
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
