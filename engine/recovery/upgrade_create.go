package recovery

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// upgradeClaim describes the dry run of an upgrade in its claim.
const upgradeClaim = "the dry run of an upgrade"

// UpgradeDatabase starts to upgrade a database to a newer major version of PostgreSQL, and returns the operation at once.
// It backs the database up, stops it, and upgrades a copy of the data, to which it switches as a restore in place does: the
// data before the upgrade is kept, and RecoveryUndo brings it back. A dry run restores the newest backup beside the running
// database, upgrades that, and removes it again; its operation says what it found.
func (s *Service) UpgradeDatabase(ctx context.Context, call *model.Call, id, version string, dryRun bool) (model.DatabaseOperation, error) {
	if _, err := databases.ParseMajor("version", version); err != nil {
		return model.DatabaseOperation{}, err
	}
	call.Note("version", version)
	if dryRun {
		call.Note("dry_run", "true")
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.DatabaseOperation{}, err
	}
	db, err := s.databases.Database(call, id)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	if db.Sandbox {
		return model.DatabaseOperation{}, model.Errorf(model.CodeForbidden, "%s is a sandbox, which is deleted when its command ends: make another one with the newer version", db.Name)
	}
	from, to, err := s.databases.UpgradeVersions(ctx, db, "version", version)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	u := &upgrading{service: s, to: to}
	awake, err := s.databases.Awaken(db, !dryRun)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	u.awake = sync.OnceFunc(awake)
	if err := s.databases.RefuseUpgrade(ctx, db, to); err != nil {
		u.close()
		return model.DatabaseOperation{}, err
	}
	if dryRun {
		return s.beginDryRun(call, db, from, u)
	}
	return s.beginUpgrade(call, id, from, u)
}

// beginUpgrade claims the database and starts the upgrade.
func (s *Service) beginUpgrade(call *model.Call, id string, from binaries.Set, u *upgrading) (model.DatabaseOperation, error) {
	next := stage{upgrade: u}
	op, err := s.beginSwitch(call, id, model.OperationUpgrade, "backing_up", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		if db.Major != from.Major { // it was upgraded meanwhile
			return next, model.Errorf(model.CodeConflict, "the database runs PostgreSQL %s now", db.Version)
		}
		stats, _ := s.databases.Statistics.Get(db.ID)
		if err := s.reserveForUpgrade(op.ID, db.ID, stats.SizeBytes); err != nil {
			return next, err
		}
		op.Generation = db.LastGeneration() + 2 // after that of the copy
		op.Upgrade = &model.Upgrade{From: from.Version, To: u.to.Version, Estimated: s.estimateUpgrade(db.ID, stats.SizeBytes)}
		u.db, u.op = db, *op
		next.build = u.build
		return next, nil
	})
	if err != nil {
		u.close()
	}
	return op, err
}

// beginDryRun claims the backups of a database and starts the dry run.
func (s *Service) beginDryRun(call *model.Call, db model.Database, from binaries.Set, u *upgrading) (op model.DatabaseOperation, err error) {
	release, err := s.databases.ClaimBackups(db.ID, upgradeClaim)
	if err != nil {
		u.close()
		return op, err
	}
	op, p, err := s.planDryRun(db)
	if err == nil {
		op.Upgrade = &model.Upgrade{From: from.Version, To: u.to.Version}
		call.Note("backup", op.Backup)
		err = s.core.Change(call, func(tx *meta.Tx) error {
			return cmp.Or(s.core.RenewAuthority(tx, call), databases.InsertBeside(tx, op))
		})
	}
	if err != nil {
		s.core.Space.Release(op.ID)
		release()
		u.close()
		return op, core.ExplainDiskFull(err)
	}
	u.db, u.op = db, op
	s.core.Work.Go(func() {
		defer u.close()
		defer s.core.Space.Release(op.ID)
		defer s.databases.Progress.Drop(op.ID)
		ctx, ended := s.core.Cancels.Add(s.core.Lifetime, databases.BackupClaim(db.ID)) // a restore and a deletion take precedence
		defer ended()
		err := u.dryRun(ctx, p)
		release()
		u.endDryRun(err)
	})
	return op, nil
}

// planDryRun returns the operation of a dry run, with the space for it reserved, and the plan for the restore of the newest backup.
func (s *Service) planDryRun(db model.Database) (op model.DatabaseOperation, p RestorePlan, err error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return op, p, err
	}
	if len(backups) == 0 || backups[0].Major() != db.Major {
		return op, p, model.Errorf(model.CodeConflict, "%s has no completed backup of PostgreSQL %d, and the dry run upgrades one: make a backup first", db.Name, db.Major)
	}
	if p, err = s.PlanBackup(s.core.Lifetime, backups[0]); err != nil {
		return op, p, err
	}
	op = s.databases.NewOperation(db, model.OperationUpgradeDryRun, "restoring")
	p.describe(&op)
	return op, p, s.reserveForRestore(op.ID, p)
}

// reserveForUpgrade refuses an upgrade that does not fit on the disk beside the data that it replaces and what other operations
// will still write, and reserves what it needs for an operation.
func (s *Service) reserveForUpgrade(operation, database string, size int64) error {
	if s.CanClone(s.databases.DatabaseDirectory(database)) {
		size = 0
	}
	return s.core.Space.Reserve(operation, size, core.SpaceMargin, func(free int64) error {
		return core.NoSpace(nil, "the disk has %d MB free that no other operation needs, and the upgrade needs %d MB beside the data that it replaces: the operator must free disk space",
			free>>20, (size+core.SpaceMargin)>>20)
	})
}

// trialDirectories returns where a dry run has the copy and the upgraded data.
func (s *Service) trialDirectories(operation string) (from, to string) {
	trial := filepath.Join(s.core.Config.DataDir, VerificationDirectory, operation)
	return trial + "_from", trial + "_to"
}

// setUpgrade records a change of what an upgrade reports.
func (s *Service) setUpgrade(id string, change func(*model.Upgrade)) error {
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Operations().Change(id, func(o *model.DatabaseOperation) {
			next := *o.Upgrade
			change(&next)
			o.Upgrade = &next
		})
	})
	if err != nil {
		return fmt.Errorf("record an upgrade: %w", err)
	}
	return nil
}
