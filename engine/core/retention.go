package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"holdfast/engine/meta"
)

// A start with a shorter retention, perhaps because a flag was forgotten on a new machine, would remove at once what
// clients were told can be brought back. So the retention before stays in force for RetentionGrace. A deleted database
// needs none of this: its record says until when it is kept.

const (
	// RetentionGrace is how long a retention stays in force after a start has shortened it.
	RetentionGrace = 24 * time.Hour

	retentionSetting = "retentions"
	forEver          = time.Duration(math.MaxInt64)
)

// retention is how long something is kept.
type retention struct {
	Last   time.Duration `json:"last_ns"` // of the last start
	Longer time.Duration `json:"longer_ns,omitempty"`
	Until  time.Time     `json:"until,omitzero"` // Longer is in force before then
}

// at returns the retention in force, where the configured one is value.
func (r retention) at(value time.Duration, now time.Time) time.Duration {
	if now.Before(r.Until) {
		return max(value, r.Longer)
	}
	return value
}

// next returns the retention after a start with that value. A grace period begins at now, and one that is under way ends by
// ends, the times of RetentionClock and LockClock.
func (r retention) next(value time.Duration, now, ends time.Time) retention {
	end := now.Add(RetentionGrace)
	if value != r.Last {
		r = retention{Last: value, Longer: r.at(r.Last, ends), Until: end}
	}
	if r.Longer <= value || !ends.Before(r.Until) {
		return retention{Last: value}
	}
	if r.Until.After(end) { // the clock was set back
		r.Until = end
	}
	return r
}

// retentions are those of the last start that apply to what was deleted or made before it.
type retentions struct {
	Objects retention `json:"object_trash"`
	Backups retention `json:"backup"` // forEver in place of 0
}

// ObjectTrashRetention returns how long objects and buckets in the trash are kept now.
func (c *Core) ObjectTrashRetention() time.Duration {
	return c.retentions.Objects.at(c.Config.ObjectTrashRetention, c.LockClock())
}

// BackupRetention returns how long backups are kept now, 0 for ever.
func (c *Core) BackupRetention() time.Duration {
	kept := c.retentions.Backups.at(orForEver(c.Config.BackupRetention), c.LockClock())
	if kept == forEver {
		return 0
	}
	return kept
}

func orForEver(retention time.Duration) time.Duration {
	if retention == 0 {
		return forEver
	}
	return retention
}

// BeginRetentions compares the retentions with those of the last start, whose longer ones stay in force for
// RetentionGrace, and shortens a grace period of older metadata that a clock ahead began. It must run before anything is
// removed for its age.
func (c *Core) BeginRetentions() error {
	now, ends, objects, backups := c.RetentionClock(), c.LockClock(), c.Config.ObjectTrashRetention, orForEver(c.Config.BackupRetention)
	last := retentions{Objects: retention{Last: objects}, Backups: retention{Last: backups}}
	err := c.Meta.Update(func(tx *meta.Tx) error {
		if text := tx.Setting(retentionSetting); len(text) > 0 {
			if err := json.Unmarshal(text, &last); err != nil {
				return fmt.Errorf("read the retentions of the last start: %w", err)
			}
		}
		c.retentions = retentions{last.Objects.next(objects, now, ends), last.Backups.next(backups, now, ends)}
		text, err := json.Marshal(c.retentions)
		if err != nil {
			return fmt.Errorf("encode the retentions: %w", err)
		}
		return errors.Join(tx.PutSetting(retentionSetting, text), c.boundKeepAll(tx, now))
	})
	c.warnShorter("--object-trash-retention", c.retentions.Objects)
	c.warnShorter("--backup-retention", c.retentions.Backups)
	return err
}

func (c *Core) warnShorter(flag string, r retention) {
	if r.Longer > 0 {
		c.Log.Warn("a retention is shorter than at an earlier start: what the longer one promised is kept until removal begins; give the flag its value of "+
			"before to keep it", "flag", flag, "before", retentionText(r.Longer), "now", retentionText(r.Last), "removal_begins", r.Until)
	}
}

func retentionText(r time.Duration) string {
	if r == forEver {
		return "for ever"
	}
	return r.String()
}
