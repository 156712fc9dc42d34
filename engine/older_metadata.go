package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/publish"
)

// An older holdfast.db can be brought back. What it has under way has ended
// since, what lay in its trash may be in use, and of what was made since it
// knows nothing. So the data directory notes how far the metadata have come,
// and the first start behind that removes nothing: it puts aside, and gives
// people time.

const (
	// commitsFile, in metadataBackups, has the number of the last commit, as
	// it was at most a sweepInterval ago.
	commitsFile = "commits"
	// olderGrace is for how long nothing expires that could be brought back.
	olderGrace = 72 * time.Hour
)

// olderSetting has, in the metadata, until when that is.
const olderSetting = "older_until"

func (e *Engine) commitsPath() string {
	return filepath.Join(e.cfg.DataDir, metadataBackups, commitsFile)
}

// noteCommits notes how far the metadata have come.
func (e *Engine) noteCommits() error {
	n, err := e.meta.Commits()
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
		e.log.Warn("note how far the metadata have come", "error", err)
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
	n, err := e.meta.Commits()
	return n < noted, err
}

// settleOlder prepares for settling with older metadata.
func (e *Engine) settleOlder() error {
	e.log.Warn("holdfast.db is older than what the data directory was last used with: what it does not know or has not finished is put aside, "+
		"nothing is removed; see which databases, keys and passwords are as they should be", "path", filepath.Join(e.cfg.DataDir, straysDir))
	until := e.wallClock().Add(olderGrace)
	text, err := until.MarshalText()
	if err != nil {
		return fmt.Errorf("note until when all is kept: %w", err)
	}
	e.guard.mu.Lock()
	e.guard.keepAll = until
	e.guard.mu.Unlock()
	begun := map[string]int{} // by database
	if err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			begun[db.ID] = 0
			return nil
		})
	}); err != nil {
		return err
	}
	for id := range begun {
		begun[id] = max(highestNumber(e.databaseDirectory(id)), highestNumber(filepath.Join(e.backupDirectory(id), walDirectory)))
	}
	return e.meta.Update(func(tx *meta.Tx) error {
		if err := tx.PutSetting(olderSetting, text); err != nil {
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

// keepAllSetting returns until when nothing is removed for its age, zero when
// the metadata never were older.
func keepAllSetting(tx *meta.Tx) (until time.Time) {
	_ = until.UnmarshalText(tx.Setting(olderSetting)) // none is there
	return until
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

// discard removes what was begun for a database and did not come to be; with
// older metadata, by which that is not sure, it is put aside.
func (e *Engine) discard(path, name string) error {
	if !e.older {
		return os.RemoveAll(path)
	}
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	return e.clearAway(path, name, false)
}

// discardBlob removes a blob of which the metadata know nothing; with older
// metadata it is put aside.
func (e *Engine) discardBlob(ref blobstore.Ref, size int64, older bool) error {
	if !older {
		e.log.Warn("removing a blob that belongs to no record", "blob", ref, "bytes", size)
		return e.blobs.Remove(ref)
	}
	dir := filepath.Join(e.cfg.DataDir, straysDir, "blobs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to := filepath.Join(dir, string(ref))
	e.log.Warn("putting aside a blob that belongs to no record", "blob", ref, "bytes", size, "to", to)
	return e.blobs.PutAside(ref, to)
}
