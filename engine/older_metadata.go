package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/durable"
)

// An operator may restore an older copy of holdfast.db. Its pending operations have ended since, databases in its trash
// may be in use, and it has no record of anything created since. So a file in the data directory records the number of
// the last commit, and the history that it belongs to. A start with fewer commits, or with another history, removes
// nothing: it quarantines unknown files, begins a new history and extends retention periods. Until the quarantine is
// complete, nothing is recorded, so that the next start does the same.

const (
	// commitsFile, in MetadataBackups, has the number of the last commit, at most a
	// sweepInterval old, and after a space the history unless it is the first one.
	commitsFile = "commits"
	// historySetting names what the commits since the last restored copy have in common.
	historySetting = "history"
)

func (e *Engine) commitsPath() string {
	return filepath.Join(e.Core.Config.DataDir, core.MetadataBackups, commitsFile)
}

// position is a number of a commit, and the history that it counts in.
type position struct {
	commits uint64
	history string
}

func (p position) String() string { return strings.TrimSpace(fmt.Sprint(p.commits, " ", p.history)) }

// parsePosition parses what String returns.
func parsePosition(text string) (p position, err error) {
	number, history, _ := strings.Cut(text, " ")
	p.history = history
	p.commits, err = strconv.ParseUint(number, 10, 64)
	return p, err
}

// position returns the position of the metadata.
func (e *Engine) position() (p position, err error) {
	if p.commits, err = e.Core.Meta.Commits(); err != nil {
		return p, err
	}
	p.history, err = meta.Value(e.Core.Meta.View, func(tx *meta.Tx) (string, error) {
		return string(tx.Setting(historySetting)), nil
	})
	return p, err
}

// noteCommits records the number of the last commit.
func (e *Engine) noteCommits() error {
	if e.quarantining.Load() {
		return nil
	}
	p, err := e.position()
	if err == nil {
		err = e.Core.Meta.Durable()
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.commitsPath()), 0o700); err != nil {
		return fmt.Errorf("record the number of the newest commit: %w", err)
	}
	_, err = durable.WriteFileIfChanged(e.commitsPath(), []byte(p.String()), 0o600)
	return err
}

// tryNoteCommits is noteCommits, but only logs an error, so that a full disk does not block a start: the number is then
// slightly out of date.
func (e *Engine) tryNoteCommits() {
	if err := e.noteCommits(); err != nil {
		e.Core.Log.Warn("record the number of the newest commit", "error", err)
	}
}

// isOlder reports whether the metadata have fewer commits than were recorded, or another history. A record that cannot be
// read does not say that they have not.
func (e *Engine) isOlder() (bool, error) {
	p, err := e.position()
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(e.commitsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var noted position
	if err == nil {
		noted, err = parsePosition(string(text))
	}
	if err != nil {
		e.Core.Log.Warn("the number of the newest commit cannot be read: holdfast.db may be older than the data directory", "path", e.commitsPath(), "error", err)
		return true, nil
	}
	return p.commits < noted.commits || p.history != noted.history, nil
}

// reconcileBlobs removes or quarantines the blobs without a record, and records that it is done.
func (e *Engine) reconcileBlobs(ctx context.Context, older bool) {
	if err := e.Objects.ReconcileBlobs(ctx, older); err != nil {
		if ctx.Err() == nil {
			e.Core.Log.Error("reconcile blobs", "error", err)
		}
		return
	}
	if e.quarantining.Swap(false) {
		e.tryNoteCommits()
	}
}

// recoverOlder begins a new history, extends retention periods and reserves the numbers of generations that are missing from the older
// metadata.
func (e *Engine) recoverOlder() error {
	e.Core.Log.Warn("holdfast.db is older than what the data directory was last used with: what it does not know or has not finished is moved to quarantine, "+
		"nothing is removed; see which databases, keys and passwords are as they should be", "path", filepath.Join(e.Core.Config.DataDir, core.QuarantineDir))
	until := e.Core.RetentionClock().Add(core.OlderGrace)
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
		if err := errors.Join(e.Core.KeepAllUntil(tx, until), tx.PutSetting(historySetting, []byte(rand.Text()))); err != nil {
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
