package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/durable"
)

// An operator may restore an older copy of holdfast.db. Its pending operations have ended since, databases in its trash
// may be in use, and it has no record of anything created since. So a file in the data directory records the number of
// the last commit. A start with fewer commits removes nothing: it quarantines unknown files and extends retention
// periods.

const (
	// commitsFile, in MetadataBackups, has the number of the last commit, at most a
	// sweepInterval old.
	commitsFile = "commits"
	// olderGrace is how long nothing expires after a start with older metadata.
	olderGrace = 72 * time.Hour
)

func (e *Engine) commitsPath() string {
	return filepath.Join(e.Core.Config.DataDir, core.MetadataBackups, commitsFile)
}

// noteCommits records the number of the last commit.
func (e *Engine) noteCommits() error {
	n, err := e.Core.Meta.Commits()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.commitsPath()), 0o700); err != nil {
		return fmt.Errorf("record the number of the newest commit: %w", err)
	}
	_, err = durable.WriteFileIfChanged(e.commitsPath(), strconv.AppendUint(nil, n, 10), 0o600)
	return err
}

// tryNoteCommits is noteCommits, but only logs an error, so that a full disk does not block a start: the number is then
// slightly out of date.
func (e *Engine) tryNoteCommits() {
	if err := e.noteCommits(); err != nil {
		e.Core.Log.Warn("record the number of the newest commit", "error", err)
	}
}

// isOlder reports whether the metadata have fewer commits than were recorded. An unreadable record counts as none.
func (e *Engine) isOlder() (bool, error) {
	text, err := os.ReadFile(e.commitsPath())
	if err != nil {
		return false, nil
	}
	noted, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return false, nil
	}
	n, err := e.Core.Meta.Commits()
	return n < noted, err
}

// recoverOlder extends retention periods and reserves the numbers of generations that are missing from the older
// metadata.
func (e *Engine) recoverOlder() error {
	e.Core.Log.Warn("holdfast.db is older than what the data directory was last used with: what it does not know or has not finished is moved to quarantine, "+
		"nothing is removed; see which databases, keys and passwords are as they should be", "path", filepath.Join(e.Core.Config.DataDir, core.QuarantineDir))
	until := e.Core.WallClock().Add(olderGrace)
	text, err := until.MarshalText()
	if err != nil {
		return fmt.Errorf("record until when everything is kept: %w", err)
	}
	e.Core.Guard.Mu.Lock()
	e.Core.Guard.KeepAll = until
	e.Core.Guard.Mu.Unlock()
	begun := map[string]int{} // by database
	if err := e.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			begun[db.ID] = 0
			return nil
		})
	}); err != nil {
		return err
	}
	for id := range begun {
		begun[id] = max(highestNumber(e.Databases.DatabaseDirectory(id)), highestNumber(filepath.Join(e.Recovery.BackupDirectory(id), recovery.WALDirectory)))
	}
	return e.Core.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.PutSetting(core.OlderSetting, text); err != nil {
			return err
		}
		for id, number := range begun {
			if err := tx.Databases().Change(id, func(d *model.Database) {
				d.Begun = max(d.Begun, number) // each number is used once
				if d.Trash != nil && d.Trash.Until.Before(until) {
					d.Trash.Until = until
				}
				if d.Replaced != nil && d.Replaced.ExpiresAt.Before(until) {
					d.Replaced.ExpiresAt = until
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// highestNumber returns the highest number among the names in dir, 0 for none.
func highestNumber(dir string) int {
	entries, _ := os.ReadDir(dir)
	highest := 0
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}
