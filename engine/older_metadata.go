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
	"holdfast/engine/publish"
	"holdfast/engine/recovery"
)

// An older holdfast.db can be brought back. What it has under way has ended
// since, what lay in its trash may be in use, and of what was made since it
// knows nothing. So the data directory notes how far the metadata have come,
// and the first start behind that removes nothing: it puts aside, and gives
// people time.

const (
	// commitsFile, in MetadataBackups, has the number of the last commit, as
	// it was at most a sweepInterval ago.
	commitsFile = "commits"
	// olderGrace is for how long nothing expires that could be brought back.
	olderGrace = 72 * time.Hour
)

func (e *Engine) commitsPath() string {
	return filepath.Join(e.Core.Config.DataDir, core.MetadataBackups, commitsFile)
}

// noteCommits notes how far the metadata have come.
func (e *Engine) noteCommits() error {
	n, err := e.Core.Meta.Commits()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.commitsPath()), 0o700); err != nil {
		return fmt.Errorf("note how far the metadata have come: %w", err)
	}
	_, err = publish.FileIfChanged(e.commitsPath(), strconv.AppendUint(nil, n, 10), 0o600)
	return err
}

// tryNoteCommits is noteCommits where a full disk must be in nobody's way: the
// note is then a little behind.
func (e *Engine) tryNoteCommits() {
	if err := e.noteCommits(); err != nil {
		e.Core.Log.Warn("note how far the metadata have come", "error", err)
	}
}

// isOlder reports whether the metadata have come less far than once before. A
// note that cannot be read says nothing.
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

// settleOlder prepares for settling with older metadata.
func (e *Engine) settleOlder() error {
	e.Core.Log.Warn("holdfast.db is older than what the data directory was last used with: what it does not know or has not finished is put aside, "+
		"nothing is removed; see which databases, keys and passwords are as they should be", "path", filepath.Join(e.Core.Config.DataDir, core.StraysDir))
	until := e.Core.WallClock().Add(olderGrace)
	text, err := until.MarshalText()
	if err != nil {
		return fmt.Errorf("note until when all is kept: %w", err)
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
		begun[id] = max(highestNumber(e.Databases.DatabaseDirectory(id)), highestNumber(filepath.Join(e.Recovery.BackupDirectory(id), recovery.WalDirectory)))
	}
	return e.Core.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.PutSetting(core.OlderSetting, text); err != nil {
			return err
		}
		for id, number := range begun {
			if _, err := tx.Databases().Update(id, func(d *model.Database) error {
				d.Begun = max(d.Begun, number) // a number is used once
				if d.Trash != nil && d.Trash.Until.Before(until) {
					d.Trash.Until = until
				}
				if d.Replaced != nil && d.Replaced.ExpiresAt.Before(until) {
					d.Replaced.ExpiresAt = until
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// highestNumber returns the highest number that is a name in dir, 0 for none.
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
