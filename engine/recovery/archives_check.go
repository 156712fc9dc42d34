package recovery

import (
	"context"
	"time"

	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

const (
	// checkInterval is how often archived WAL is looked for.
	checkInterval = time.Hour
	// readInterval is how often archived WAL is read, because a file may rot without a change of its size.
	readInterval = 24 * time.Hour
)

// CheckArchive checks in the background, when that is due, that the archive still has the WAL since the newest backup of a
// database's present data: soon after a start and then every hour it looks for the files, and every day it reads them. WAL that
// is lost is a gap: the present data need another backup. For older WAL, no backup could make up.
func (s *Service) CheckArchive(db model.Database) {
	if db.Sandbox || s.isAway(db.ID) {
		return
	}
	a := s.archives.get(db.ID)
	if !a.checking.TryLock() {
		return
	}
	now := s.core.Clock()
	if !a.checked.IsZero() && !now.Before(a.checked) && now.Before(a.checked.Add(checkInterval)) {
		a.checking.Unlock()
		return
	}
	if a.checked.IsZero() {
		a.readSince = now
	}
	a.checked = now
	read := now.After(a.readSince.Add(readInterval))
	if read {
		a.readSince = now
	}
	s.core.Background(func(ctx context.Context) {
		defer a.checking.Unlock()
		if err := s.checkArchive(ctx, db, read); err != nil && ctx.Err() == nil && model.CodeOf(err) != model.CodeNotFound {
			s.core.Log.Error("check the archived WAL", "database", db.ID, "error", err)
		}
	})
}

// checkArchive records the WAL that was lost, and has a backup made.
func (s *Service) checkArchive(ctx context.Context, db model.Database, read bool) error {
	defer s.archives.get(db.ID).hold()()
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return err
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return err
	}
	for _, b := range backups {
		if !reaches(archive, b, db.Generation) {
			continue
		}
		start, err := xlog.ParseLSN(b.StartLSN)
		if err != nil {
			return err
		}
		from := wal.Position{Generation: b.Generation, Timeline: uint32(b.Timeline), LSN: start}
		lost, generation, err := archive.FindLost(ctx, from, db.Generation, read)
		if err != nil || lost == nil {
			return err
		}
		now, err := s.databases.Record(db.ID)
		if err != nil || now.Trash != nil || now.Generation != db.Generation { // its files may be being removed
			return err
		}
		lost.At = s.core.Clock().UTC()
		if before, err := archive.Window(ctx, db.Generation, 0, start); err == nil && !before.LastCommit.IsZero() {
			lost.At = before.LastCommit
		}
		if err := archive.AddGap(generation, *lost); err != nil {
			return err
		}
		s.WALLost(db, *lost)
		return nil
	}
	return nil
}
