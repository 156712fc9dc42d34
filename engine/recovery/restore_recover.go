package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/durable"
)

// Unpack restores the files of the plan's backup into the directory dir. If it is damaged, its verification has failed.
func (s *Service) Unpack(ctx context.Context, plan RestorePlan, dir string, opts backup.RestoreOptions) (err error) {
	defer func() {
		if errors.Is(err, repository.ErrDamaged) && plan.files == nil {
			s.noteDamaged(plan.Backup, err)
		}
	}()
	source, err := s.snapshotOf(plan)
	if err != nil {
		return err
	}
	defer source.Close()
	return backup.Restore(ctx, source, dir, opts)
}

// noteDamaged records that a backup is damaged.
func (s *Service) noteDamaged(b model.Backup, damage error) {
	now := s.core.Clock()
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Backups().Change(b.ID, func(b *model.Backup) {
			b.Verification = model.Verification{Status: model.VerificationFailed, At: &now, Detail: databases.OperationMessage(damage)}
		})
	})
	if err != nil {
		s.core.Log.Error("note that a backup is damaged", "database", b.Database, "backup", b.ID, "error", err)
	}
}

// standbySignal is the file that makes a server wait for missing WAL.
const standbySignal = "standby.signal"

// StartRecovered starts a private instance on the unpacked directory, feeds it
// the WAL up to the plan's target and promotes it there. After an error the caller
// stops the instance, which the supervisor may still be restarting.
func (s *Service) StartRecovered(ctx context.Context, scratch postgres.Spec, plan RestorePlan, progress func(done, total int64)) error {
	archive, err := s.archiveOf(plan)
	if err != nil {
		return err
	}
	recovery := plan.Recovery(archive, scratch.Dir)
	recovery.Progress = func(at xlog.LSN) { progress(int64(at)-int64(plan.Start), plan.WALBytes()) }
	if err := recovery.Prepare(ctx); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(scratch.Dir, standbySignal), nil, 0o600); err != nil {
		return err
	}
	maps.Copy(scratch.Config.Settings, recovery.Settings())
	if err := s.replay(ctx, scratch, recovery); err != nil {
		return err
	}
	conn, err := s.databases.Instances.Connect(ctx, scratch.ID, databases.Maintenance)
	if err != nil {
		return fmt.Errorf("connect to recovered instance: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return postgres.Promote(ctx, conn, walSlot)
}

// replay starts an instance and feeds it the WAL up to the target. Some settings must be at least as high as on the server
// that wrote the WAL, whatever the database's current ones are: first as on the server that was backed up. Where the WAL
// says that they were raised later, the instance pauses or ends and has the new values in its pg_control; it goes on with these.
func (s *Service) replay(ctx context.Context, scratch postgres.Spec, recovery wal.Recovery) error {
	var err error
	if scratch.Config.AtLeast, err = backup.StandbySettings(scratch.Dir); err != nil {
		return err
	}
	for {
		failed := s.startWithWAL(ctx, scratch, recovery)
		if failed == nil || ctx.Err() != nil {
			return failed
		}
		if err := s.databases.StopInstance(ctx, scratch.ID); err != nil {
			return errors.Join(failed, err)
		}
		found, err := backup.StandbySettings(scratch.Dir)
		if err != nil {
			return errors.Join(failed, err)
		}
		for name, value := range scratch.Config.AtLeast {
			found[name] = max(value, found[name])
		}
		if maps.Equal(found, scratch.Config.AtLeast) {
			return failed
		}
		scratch.Config.AtLeast = found
		s.core.Log.Info("a recovery goes on with settings that were raised after the backup", "instance", scratch.ID)
	}
}

// startWithWAL starts an instance and feeds it WAL meanwhile: the instance accepts connections only once it has enough WAL
// to be consistent. When startWithWAL returns, the instance is paused or promoted at the target; after an error nothing
// runs. The supervisor restarts an instance that dies on the way, unless it keeps dying.
func (s *Service) startWithWAL(ctx context.Context, scratch postgres.Spec, recovery wal.Recovery) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	recovery.Connect = func(ctx context.Context) (*pgx.Conn, error) {
		if state, reason, _ := s.databases.Instances.Status(scratch.ID); state == postgres.StateFailed {
			cancel(fmt.Errorf("the server does not come back: %s", reason))
		}
		return s.databases.Instances.Connect(ctx, scratch.ID, databases.Maintenance)
	}
	fed := make(chan error, 1)
	go func() {
		err := recovery.Run(ctx)
		if err != nil {
			cancel(err)
		}
		fed <- err
	}()
	startErr := s.databases.Instances.Start(ctx, scratch)
	if startErr != nil {
		cancel(startErr)
	}
	feedErr := <-fed
	switch {
	case startErr == nil && feedErr == nil:
		return nil
	case startErr == nil:
		return errors.Join(feedErr, s.databases.StopInstance(ctx, scratch.ID))
	case context.Cause(ctx) != nil && errors.Is(context.Cause(ctx), wal.ErrGap):
		return context.Cause(ctx) // more precise than the cancelled start
	default:
		return startErr
	}
}

// StopRecovered stops an instance that has recovered a data directory and checks that it shut down cleanly. Its WAL was
// not synced and some pages are unwritten, so the directory is complete only after that.
func (s *Service) StopRecovered(ctx context.Context, scratch postgres.Spec) error {
	if err := s.databases.StopCleanly(ctx, scratch.ID); err != nil {
		return err
	}
	if _, err := backup.ReadShutdown(scratch.Dir); err != nil {
		return fmt.Errorf("stop the recovered server: %w", err)
	}
	return nil
}

// ScratchInstance describes a private instance on dir, a data directory of the
// database that does not serve: without TCP, under an id of its own, of the
// directory's major version, which need not be the one that the database has now.
func (s *Service) ScratchInstance(ctx context.Context, db model.Database, id, dir string) (scratch postgres.Spec, err error) {
	if db.Major, err = postgres.DirectoryMajor(dir); err != nil {
		return scratch, err
	}
	if scratch, err = s.databases.Spec(ctx, db); err != nil {
		return scratch, err
	}
	scratch.Dir = dir
	port, err := postgres.PrivatePort(s.databases.SocketDir)
	if err != nil {
		return scratch, err
	}
	scratch.ID, scratch.HBA.Allow = id, nil
	scratch.Config.Port, scratch.Config.Listen = port, nil
	scratch.Config.Preload = nil // a copy of the data must not run the tenant's jobs
	return scratch, nil
}
