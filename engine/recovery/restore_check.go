package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// checkPlan reads what the restore p needs, without changing anything: the index of all chunks of the backup, and every
// byte of the WAL. The error names the damage and the remedy.
func (s *Service) checkPlan(ctx context.Context, p RestorePlan, progress func(done, total int64)) error {
	source, err := s.snapshotOf(p)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := source.Check(); err != nil {
		return err
	}
	archive, err := s.archiveOf(p)
	if err != nil {
		return err
	}
	if err := p.Check(ctx, archive, progress); errors.Is(err, wal.ErrGap) {
		return explainGap(err)
	} else if err != nil {
		return fmt.Errorf("check the WAL: %w", err)
	}
	return nil
}

// checkAndUnpack checks the plan before it writes the first file of the restore.
func (s *Service) checkAndUnpack(ctx context.Context, p *RestorePlan, operation, dir string) error {
	progress := func(done, total int64) { s.databases.Progress.Set(operation, done, total) }
	if err := s.checkPlan(ctx, *p, progress); err != nil {
		return err
	}
	if err := s.databases.SetPhase(operation, "restoring"); err != nil {
		return err
	}
	return s.unpackTimed(ctx, p, dir, backup.RestoreOptions{Progress: func(done, total int64) {
		progress(done, total)
		s.core.Space.Written(operation, done, total)
	}})
}

// unpackTimed is Unpack, and records in the plan how long that took.
func (s *Service) unpackTimed(ctx context.Context, p *RestorePlan, dir string, opts backup.RestoreOptions) error {
	began := time.Now()
	err := s.Unpack(ctx, *p, dir, opts)
	p.unpacked = time.Since(began)
	return err
}

// checkExtensions refuses a recovered database with an extension whose files this machine lacks: what needs it would
// fail. The error says what to install.
func (s *Service) checkExtensions(ctx context.Context, instance, name string, major int) error {
	conn, err := s.databases.Instances.Connect(ctx, instance, name)
	if err != nil {
		return fmt.Errorf("check extensions: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	all, err := postgres.Extensions(ctx, conn)
	if err != nil {
		return err
	}
	return postgres.RefuseMissing(postgres.MissingExtensions(all), major)
}

// checkRestorable refuses a restore for which the disk has no room, or this machine no PostgreSQL. The room comes first:
// looking for a PostgreSQL may download one.
func (s *Service) checkRestorable(ctx context.Context, p RestorePlan) error {
	if err := s.reserveForRestore("", p); err != nil {
		return err
	}
	return s.checkMajor(ctx, p)
}

// checkMajor refuses a restore of data of a major version that this machine lacks, and says what to install.
func (s *Service) checkMajor(ctx context.Context, p RestorePlan) error {
	major := p.Backup.Major()
	if major == 0 { // a clone's; its server runs
		return nil
	}
	if _, err := s.databases.Majors.Find(ctx, major); err != nil {
		return &model.Error{Code: model.CodeConflict, Err: err, Message: fmt.Sprintf(
			"the backup is of PostgreSQL %d, which this machine lacks: the operator can restore it after installing that (on Debian the package postgresql-%d)", major, major)}
	}
	return nil
}

// errNoManifest means that a completed backup has lost its manifest.
var errNoManifest = fmt.Errorf("%w: the manifest of the backup is missing", repository.ErrDamaged)

// snapshotOf opens the plan's backup, which is complete, so that its manifest must be there and have the recorded
// digest. The caller closes it.
func (s *Service) snapshotOf(p RestorePlan) (*repository.Snapshot, error) {
	repo, err := s.repositoryOf(p)
	if err != nil {
		return nil, err
	}
	source, err := repo.Snapshot(p.Backup.ID)
	if errors.Is(err, repository.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", errNoManifest, err)
	}
	if err != nil {
		return nil, err
	}
	if b := p.Backup; source.Digest != b.ManifestBLAKE3 {
		source.Close()
		return nil, fmt.Errorf("%w: the manifest of backup %s is another than when it was made: its BLAKE3 is %s, and was %s",
			repository.ErrDamaged, b.ID, source.Digest, b.ManifestBLAKE3)
	}
	return source, nil
}

// explainGap adds a remedy for missing or damaged WAL to the error.
func explainGap(err error) error {
	return &model.Error{
		Code: model.CodeConflict,
		Message: fmt.Sprintf("%v; nothing was changed: choose a moment that lies before this segment, or a backup made after it,"+
			" or bring the file back from a copy of the backups", err),
		Err: err,
	}
}
