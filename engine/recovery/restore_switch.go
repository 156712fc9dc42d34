package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// SwitchGeneration replaces the running instance with one on the new data directory. The commit in the middle is the
// switch: by then the old instance has stopped and the new one has not accepted writes, so no crash loses what either
// has acknowledged. The next start rolls back a switch interrupted before the commit and finishes one interrupted after
// it. The caller rolls back if the new instance does not start.
func (s *Service) SwitchGeneration(ctx context.Context, db model.Database, op model.DatabaseOperation) error {
	if err := s.databases.StopInstance(ctx, db.ID); err != nil {
		return err
	}
	described := s.describeSwitch(ctx, db, op.Generation)
	described.BranchedAt = op.BranchedAt
	next, err := s.RecordSwitch(db.ID, described)
	if err != nil {
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, s.databases.Timeouts.Start)
	defer cancel()
	if _, err := s.databases.StartInstance(startCtx, next); err != nil {
		return fmt.Errorf("start restored instance: %w", err)
	}
	s.noteUpgraded(next, op)
	if err := s.databases.EndOperation(op); err != nil && !core.IsDiskFull(err) { // a full disk: recorded later
		s.core.Log.Error("record the end of a restore", "database", db.ID, "operation", op.ID, "error", err)
	}
	if err := s.ReceiveWAL(next); err != nil {
		s.core.Log.Error("receive WAL", "database", db.ID, "error", err)
	}
	if op.Type == model.OperationReset {
		s.BackUpIfOwed(next)
	} else {
		s.backUpSoon(db.ID)
	}
	s.core.Background(func(ctx context.Context) { s.databases.SampleOne(ctx, next) }) // the samples are of the replaced data
	if op.Upgrade != nil && !op.Upgrade.Analyzed {
		s.core.Background(func(ctx context.Context) { s.analyze(ctx, next) })
	}
	if superseded := db.Replaced; superseded != nil && superseded.Generation != op.Generation {
		if err := databases.RemoveDirectory(s.databases.DataDirectory(db.ID, superseded.Generation)); err != nil {
			s.core.Log.Error("remove data replaced earlier", "database", db.ID, "error", err)
		}
	}
	return nil
}

// tryDrain archives the last WAL that the stopped instance of a database wrote and
// reports whether the archive then has all its commits, which needs a clean
// shutdown.
func (s *Service) tryDrain(db model.Database) bool {
	err := s.drain(db)
	if err != nil {
		s.core.Log.Warn("what the replaced data committed last may be missing in the archive", "database", db.ID, "generation", db.Generation, "reason", err)
	}
	return err == nil
}

// Drain implements [databases.Backups].
func (s *Service) Drain(db model.Database) error {
	if err := s.StopReceiving(db.ID); err != nil {
		return err
	}
	return s.drain(db)
}

func (s *Service) drain(db model.Database) error {
	shutdown, err := backup.ReadShutdown(s.databases.DataDirectory(db.ID, db.Generation))
	if err != nil {
		return err
	}
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return err
	}
	if err := archive.Drain(db.Generation, s.serverWAL(db), shutdown.Timeline, shutdown.Checkpoint); err != nil {
		return err
	}
	// The archive ends with a whole record.
	return archive.Covers(db.Generation, shutdown.Timeline, shutdown.Checkpoint, shutdown.Checkpoint+1)
}

// describeSwitch describes the switch from db, whose instance has stopped, to a generation: whether all WAL of the old
// one is archived, when it committed last, and where in the WAL the new one continues. That is the fork point, or the
// shutdown checkpoint if the generation served before. RecordSwitch sets the time.
func (s *Service) describeSwitch(ctx context.Context, db model.Database, generation int) model.Served {
	next := model.Served{Generation: generation, Undrained: db.Rebuild || !s.tryDrain(db)} // a rebuild replaces no data
	if !db.Rebuild {
		next.Since = s.lastCommit(ctx, db).Add(time.Microsecond) // what it is restored to includes that commit
	}
	dir := s.databases.DataDirectory(db.ID, generation)
	if major, err := postgres.DirectoryMajor(dir); err == nil && major != db.Major {
		next.Major = major
	}
	shutdown, err := backup.ReadShutdown(dir)
	if err != nil {
		s.core.Log.Warn("where the WAL goes on after a switch is not known", "database", db.ID, "generation", generation, "reason", err)
		return next
	}
	next.Timeline, next.LSN = int(shutdown.Timeline), shutdown.Checkpoint.String()
	back := generation == firstGeneration || slices.ContainsFunc(db.Served, func(it model.Served) bool { return it.Generation == generation })
	if archive, err := s.WALArchive(db.ID); err == nil && !back {
		if known, err := archive.Generation(generation); err == nil && known.Parent != nil {
			next.LSN = known.Parent.Fork.String()
		}
	}
	return next
}

// lastCommit returns the time of the last commit that the archive has of the present data, zero if it is not known.
func (s *Service) lastCommit(ctx context.Context, db model.Database) time.Time {
	found, err := s.presentWindow(ctx, db)
	if err != nil {
		s.core.Log.Warn("when the replaced data committed last is not known", "database", db.ID, "generation", db.Generation, "reason", err)
	}
	return found.LastCommit
}

// presentWindow returns what the newest backup that leads to the present data can be restored to, zero if none does.
func (s *Service) presentWindow(ctx context.Context, db model.Database) (wal.Window, error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return wal.Window{}, err
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return wal.Window{}, err
	}
	newest := slices.IndexFunc(backups, func(b model.Backup) bool { return leadsTo(archive, b, db.Generation) })
	if newest < 0 {
		return wal.Window{}, nil
	}
	start, err := xlog.ParseLSN(backups[newest].StartLSN)
	if err != nil {
		return wal.Window{}, err
	}
	return archive.Window(ctx, db.Generation, 0, start)
}

// RecordSwitch commits that a generation is now the current one. If the clock has been set back, so that it is behind the
// last commit of the replaced data, the generation serves since then.
func (s *Service) RecordSwitch(id string, next model.Served) (model.Database, error) {
	now, kept := s.core.Clock().Truncate(time.Microsecond), s.core.RetentionClock().Truncate(time.Microsecond) // the precision that clients see
	next.Since = laterOf(kept, next.Since)
	version := ""
	if next.Major != 0 {
		bin, err := s.databases.Majors.Find(s.core.Lifetime, next.Major)
		if err != nil {
			return model.Database{}, err
		}
		version = bin.Version
	}
	return meta.Value(s.core.Meta.Update, func(tx *meta.Tx) (model.Database, error) {
		return tx.Databases().Update(id, func(d *model.Database) error {
			replaced := model.Replaced{Generation: d.Generation, At: now, ExpiresAt: kept.Add(s.core.Config.ReplacedRetention), BranchedAt: d.BranchedAt}
			if undone := d.Replaced; undone != nil && undone.Generation == next.Generation {
				d.BranchedAt = undone.BranchedAt
			}
			if next.BranchedAt != nil {
				d.BranchedAt = next.BranchedAt
			}
			d.Replaced = &replaced
			d.Generation = next.Generation
			if next.Major != 0 {
				d.Major, d.Version = next.Major, version
			}
			d.Served = append(d.Served, next)
			if d.Rebuild {
				d.Rebuild, d.Replaced = false, nil
			}
			return nil
		})
	})
}

// RevertSwitch stops the instance and reverts RecordSwitch, if that was committed. On a full disk it waits for free
// space: a start that used the new generation would lose what the old one acknowledges from here on. If RevertSwitch
// fails, the next start recovers the operation.
func (s *Service) RevertSwitch(ctx context.Context, before model.Database) error {
	stopErr := s.databases.StopInstance(ctx, before.ID)
	now, err := s.databases.Record(before.ID)
	if err != nil {
		return errors.Join(stopErr, err)
	}
	if now.Generation == before.Generation {
		if stopErr != nil { // the start that follows adopts it
			s.core.Log.Warn("the server of the data that stay could not be stopped", "database", before.ID, "error", stopErr)
		}
		return nil
	}
	if stopErr != nil {
		return stopErr
	}
	revert := func(tx *meta.Tx) error {
		return tx.Databases().Change(before.ID, func(d *model.Database) {
			d.Generation, d.Served, d.Replaced, d.Rebuild = before.Generation, before.Served, before.Replaced, before.Rebuild
			d.BranchedAt, d.Major, d.Version = before.BranchedAt, before.Major, before.Version
		})
	}
	if err := s.core.Meta.Update(revert); err == nil || !core.IsDiskFull(err) {
		return err
	}
	return s.core.RecordWhenSpace(ctx, revert)
}

// rollBackSwitch returns the database to its state before the operation; switched says that its instance was stopped.
// If the old data does not start either, the operation ends while retries continue in the background: a running
// operation would block all others on the database.
func (s *Service) rollBackSwitch(
	ctx context.Context, db model.Database, op model.DatabaseOperation, switched bool, cause error,
) error {
	if switched {
		if err := s.RevertSwitch(ctx, db); err != nil {
			return err
		}
		if db.Rebuild { // there was no data before
			s.failWithoutData(db, cause)
		} else if err := s.databases.StartDatabase(ctx, db); err != nil {
			if ctx.Err() != nil {
				return err
			}
			cause = errors.Join(cause, err)
		}
	}
	return s.endRolledBack(db, op, cause)
}

// endRolledBack removes what an operation has built and records its end.
func (s *Service) endRolledBack(db model.Database, op model.DatabaseOperation, cause error) error {
	removeErr := s.RemoveBuilt(db, op)
	_, err := s.databases.ConcludeOperation(s.databases.RollBack(db, op), op, cause)
	return errors.Join(removeErr, err)
}

// RemoveBuilt removes the data directory that the operation was building. It
// keeps the one that an undo would have brought back.
func (s *Service) RemoveBuilt(db model.Database, op model.DatabaseOperation) error {
	if op.Generation == 0 || db.Replaced != nil && db.Replaced.Generation == op.Generation {
		return nil
	}
	built := []int{op.Generation}
	if op.Type == model.OperationUpgrade {
		built = append(built, op.CopyGeneration())
	}
	for _, generation := range built {
		if err := s.databases.Discard(s.databases.DataDirectory(db.ID, generation), fmt.Sprintf("%s-%d", db.ID, generation)); err != nil {
			return fmt.Errorf("remove unfinished data directory: %w", err)
		}
	}
	return nil
}

// DropReplaced removes the data that a restore replaced, unless the database is
// busy: then the next sweep does it.
func (s *Service) DropReplaced(id string) error {
	release, err := s.core.Claims.TakeBriefly(id, "a clean-up")
	if err != nil {
		return nil // busy: the next sweep is soon enough
	}
	defer release()
	db, err := s.databases.Record(id)
	if err != nil || db.Replaced == nil || !s.core.MayRemove(db.Replaced.ExpiresAt) { // a restore has replaced more since
		return err
	}
	if err := s.core.Change(s.core.System(model.ActionReplacedExpire, db.Organization, databases.DatabaseResource(db)), func(tx *meta.Tx) error {
		return tx.Databases().Change(id, func(d *model.Database) { d.Replaced = nil })
	}); err != nil {
		return err
	}
	return databases.RemoveDirectory(s.databases.DataDirectory(id, db.Replaced.Generation))
}
