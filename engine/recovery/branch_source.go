package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BranchMethod is how the data directory of a branch is made.
type BranchMethod string

// The methods.
const (
	BranchClone   BranchMethod = "clone"
	BranchRestore BranchMethod = "restore"
)

// branchSource says where a branch takes its data from.
type branchSource struct {
	parent    model.Database
	method    BranchMethod
	reason    string // for a restore, in words
	estimated *time.Duration

	taken  model.Backup // that was planned for; zero for the running server
	kept   int          // generation of the parent to clone that no longer serves, 0 for the one that does
	plan   *RestorePlan // for the recovery; of a clone nil before it is built, and for ever if it needs none
	moment time.Time    // of the parent; of a clone of the running server zero before it is built

	releases []func() // of what must not be removed meanwhile
}

// close releases what the source holds. It may be called more than once.
func (b *branchSource) close() {
	if b == nil {
		return
	}
	for _, release := range b.releases {
		release()
	}
}

// version returns the version of PostgreSQL of the data: that of the parent, unless the parent was upgraded since.
func (b *branchSource) version() (major int, version string) {
	if b.taken.Version != "" {
		return b.taken.Major(), b.taken.Version
	}
	return b.parent.Major, b.parent.Version
}

// phase returns the first phase of an operation that builds the source.
func (b *branchSource) phase() string {
	if b.method == BranchClone {
		return "cloning"
	}
	return "checking"
}

// whyRestored is the reason for a restore on a file system without clones.
const whyRestored = "the file system of the appliance's data directory cannot share blocks between files, as XFS, btrfs, bcachefs and ZFS from 2.2 on can"

// sourceOfBranch decides how the data of a parent at a moment, zero for now, gets into a branch. The caller closes the
// source.
func (s *Service) sourceOfBranch(ctx context.Context, parent model.Database, at time.Time) (src *branchSource, err error) {
	if parent.Sandbox {
		return nil, model.Errorf(model.CodeForbidden, "%s is a sandbox, which is deleted when its command ends: it cannot be branched", parent.Name)
	}
	src = &branchSource{parent: parent, method: BranchClone, moment: at}
	defer func() {
		if err != nil {
			src.close()
		}
	}()
	clones := s.CanClone(s.databases.DatabaseDirectory(parent.ID))
	switch {
	case !at.IsZero():
		err = s.sourceAt(ctx, src, at, clones)
	case clones:
		err = s.sourceNow(src)
	default:
		err = s.sourceRestored(ctx, src)
	}
	return src, err
}

// sourceNow takes the data of the running server.
func (s *Service) sourceNow(src *branchSource) error {
	if err := s.mustRun(src); err != nil {
		return err
	}
	src.estimated = s.estimateClone()
	return s.reserveForClone("")
}

// mustRun keeps the parent's server awake until the source is closed, and refuses a parent whose present data cannot be had.
func (s *Service) mustRun(src *branchSource) error {
	status, reason := s.databases.LiveStatus(src.parent)
	if status == model.DatabaseAvailable {
		release, err := s.databases.Awaken(src.parent, false)
		if err == nil {
			src.releases = append(src.releases, release)
		}
		return err
	}
	err := databases.NotAvailable(src.parent, status, reason)
	if status == model.DatabaseFailed || status == model.DatabaseUnavailable {
		return model.Errorf(model.CodeConflict, "%s; with `at`, a branch begins at a moment that its backups reach", model.PublicMessage(err))
	}
	return err
}

// sourceRestored restores what the running server has committed.
func (s *Service) sourceRestored(ctx context.Context, src *branchSource) error {
	if err := s.mustRun(src); err != nil {
		return err
	}
	// Before the claim, which a backup under way gives way to.
	if owed, err := s.needsBackup(src.parent); err != nil {
		return err
	} else if owed {
		return model.Errorf(model.CodeConflict, "no backup leads to the present data of %s, because it was restored or WAL was lost after the last one, and a branch is restored from one, "+
			"because %s: the next one is made at once; try again when it is complete", src.parent.Name, whyRestored)
	}
	if err := s.claimParent(src); err != nil {
		return err
	}
	if backups, err := s.restorableBackups(src.parent.ID); err != nil {
		return err
	} else if len(backups) == 0 {
		return model.Errorf(model.CodeConflict, "%s has no completed backup, and a branch is restored from one, because %s: make a backup first", src.parent.Name, whyRestored)
	}
	src.moment = s.core.Clock()
	lsn, err := s.archivePresent(ctx, src.parent)
	if err != nil {
		return databases.ServerFailed(err)
	}
	return s.planBranch(ctx, src, RestorePoint{LSN: lsn.String(), field: "at"}, whyRestored)
}

// sourceAt takes the data at a moment in the past: of a generation that was replaced just then, or of the backups.
func (s *Service) sourceAt(ctx context.Context, src *branchSource, at time.Time, clones bool) error {
	if err := s.claimParent(src); err != nil {
		return err
	}
	reason := "data of the past is restored from the backups"
	if !clones {
		reason = whyRestored
	}
	if err := s.planBranch(ctx, src, RestorePoint{Time: at, field: "at"}, reason); err != nil || !clones {
		return err
	}
	release, err := s.core.Claims.Take(src.parent.ID, "a branch")
	if err != nil {
		return nil // it is restored
	}
	parent, err := s.databases.Record(src.parent.ID)
	if err != nil || !s.servesKept(ctx, parent, *src.plan, at) {
		release()
		return err
	}
	src.releases = append(src.releases, release)
	src.method, src.reason, src.plan, src.kept = BranchClone, "", nil, parent.Replaced.Generation
	src.estimated = s.estimateClone()
	return nil
}

// servesKept reports whether the replaced data that an undo would bring back has exactly what was committed at a moment.
func (s *Service) servesKept(ctx context.Context, parent model.Database, plan RestorePlan, at time.Time) bool {
	kept := parent.Replaced
	if kept == nil || s.core.MayRemove(kept.ExpiresAt) || plan.Target.Generation != kept.Generation {
		return false
	}
	last, err := backup.ReadShutdown(s.databases.DataDirectory(parent.ID, kept.Generation))
	if err != nil {
		return false
	}
	archive, err := s.WALArchive(parent.ID)
	if err != nil {
		return false
	}
	found, err := archive.Resolve(ctx, wal.Target{
		Generation: kept.Generation, Since: plan.Start, Time: at, Idle: s.idleUntil(parent, kept.Generation, time.Time{}),
	})
	return err == nil && found.Limit.End >= last.Checkpoint
}

// claimParent claims the backups that a restore reads.
func (s *Service) claimParent(src *branchSource) error {
	release, err := s.databases.ClaimBackups(src.parent.ID, databases.Restoring)
	if err == nil {
		src.releases = append(src.releases, release)
	}
	return err
}

func (s *Service) planBranch(ctx context.Context, src *branchSource, at RestorePoint, reason string) error {
	p, err := s.planPoint(ctx, src.parent, at)
	if err == nil {
		err = s.checkRestorable(ctx, p)
	}
	if err != nil {
		return err
	}
	src.method, src.reason, src.plan, src.taken = BranchRestore, reason, &p, p.Backup
	src.estimated, err = s.estimate(p)
	return err
}

// presentWait is how long archivePresent waits for the WAL.
const presentWait = 30 * time.Second

// archivePresent returns an LSN before which is everything that a running server has acknowledged, once the archive has
// the WAL up to there.
func (s *Service) archivePresent(ctx context.Context, db model.Database) (xlog.LSN, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, presentWait, model.Errorf(model.CodeConflict,
		"the WAL of %s was not archived within %v, as on a full disk or while its server restarts; try again", db.Name, presentWait))
	defer cancel()
	conn, err := s.databases.Instances.Connect(ctx, db.ID, databases.Maintenance)
	if err != nil {
		return 0, fmt.Errorf("connect to the parent: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The commit flushes the WAL, also that of commits that did not wait for it.
	if _, err := conn.Exec(ctx, "select pg_logical_emit_message(true, 'holdfast', 'branch')"); err != nil {
		return 0, fmt.Errorf("flush the parent's WAL: %w", err)
	}
	var text string
	var timeline uint32
	err = conn.QueryRow(ctx, `select pg_current_wal_flush_lsn()::text, ('x' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8))::bit(32)::bigint`).
		Scan(&text, &timeline)
	if err != nil {
		return 0, fmt.Errorf("read the parent's position: %w", err)
	}
	lsn, err := xlog.ParseLSN(text)
	if err != nil {
		return 0, err
	}
	live, err := s.liveWAL(db)
	if err == nil {
		err = live.WaitFor(ctx, timeline, lsn)
	}
	if err != nil {
		return 0, fmt.Errorf("wait until the parent's WAL is archived: %w", err)
	}
	return lsn, nil
}

// reserveForClone refuses a clone on a disk that is nearly full, and reserves for an operation, or for none if that is empty, what
// the server of the clone writes at once.
func (s *Service) reserveForClone(operation string) error {
	const bytes = 4 * core.MinFreeSpace
	return s.core.Space.Reserve(operation, bytes, core.SpaceMargin-bytes, func(free int64) error {
		return core.NoSpace(nil, "the disk has %d MB free that no other operation needs, and a branch needs %d MB: the operator must free disk space",
			free>>20, core.SpaceMargin>>20)
	})
}

// reserveForBranch reserves what an operation needs that makes a branch of a source.
func (s *Service) reserveForBranch(operation string, src *branchSource) error {
	if src.method == BranchRestore {
		return s.reserveForRestore(operation, *src.plan)
	}
	return s.reserveForClone(operation)
}

// buildBranch makes dir the data directory of a branch, to be recovered with the source's plan.
func (s *Service) buildBranch(ctx context.Context, src *branchSource, operation, dir string) error {
	switch {
	case src.method == BranchRestore:
		return s.checkAndUnpack(ctx, src.plan, operation, dir)
	case src.kept != 0:
		_, err := backup.CloneStopped(ctx, s.databases.DataDirectory(src.parent.ID, src.kept), dir)
		return err
	default:
		return s.cloneRunning(ctx, src, dir)
	}
}

// cloneRunning clones the data directory of the parent's server, and plans its recovery with the WAL in the archive, of
// which nothing is pruned meanwhile.
func (s *Service) cloneRunning(ctx context.Context, src *branchSource, dir string) error {
	src.releases = append(src.releases, s.archives.get(src.parent.ID).hold())
	conn, err := s.databases.Instances.Connect(ctx, src.parent.ID, databases.Maintenance)
	if err != nil {
		return databases.ServerFailed(fmt.Errorf("connect to the parent: %w", err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// Its generation stays the current one as long as the session lives.
	parent, err := s.databases.Record(src.parent.ID)
	if err != nil {
		return err
	}
	live, err := s.awaitReceiver(ctx, parent)
	if err != nil {
		return s.explainParentGone(parent, err)
	}
	cloned, err := backup.Clone(ctx, conn, dir, parent.Name)
	if err != nil {
		return s.explainParentGone(parent, err)
	}
	now := s.core.Clock()
	src.moment = now.Add(-time.Since(cloned.At)).Truncate(time.Microsecond)
	ctx, cancel := context.WithTimeoutCause(ctx, s.databases.Timeouts.WAL, backup.ErrNotArchived)
	defer cancel()
	if err := live.WaitFor(ctx, cloned.Timeline, cloned.Stop); err != nil {
		return fmt.Errorf("wait for the parent's WAL up to %v: %w", cloned.Stop, err)
	}
	plan, err := s.PlanEnd(ctx, model.Backup{
		Database: parent.ID, Organization: parent.Organization, Generation: parent.Generation, Timeline: int(cloned.Timeline),
		StartLSN: cloned.Start.String(), StopLSN: cloned.Stop.String(), SizeBytes: cloned.SizeBytes, CompletedAt: &now,
	})
	if err == nil {
		src.plan = &plan
	}
	return err
}

// explainParentGone adds the remedy if the parent's server went away.
func (s *Service) explainParentGone(parent model.Database, err error) error {
	now, lookErr := s.databases.Record(parent.ID)
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	if status, _ := s.databases.LiveStatus(now); status == model.DatabaseAvailable || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w; if the parent was stopped meanwhile, branch it again once it is available", err)
}

// clonePaceSetting stores the measurements of branches made by cloning, from the first byte until the branch accepted
// connections.
const clonePaceSetting = "pace.clone"

// noteClone adds a run to the measurements.
func (s *Service) noteClone(src *branchSource, took time.Duration) {
	if src.method != BranchClone || src.plan == nil {
		return
	}
	s.notePace(clonePaceSetting, *src.plan, 0, took)
}

// estimateClone returns about how long a branch by cloning takes, whatever its size, nil if none was measured.
func (s *Service) estimateClone() *time.Duration {
	known, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (restorePace, error) { return readPace(tx, clonePaceSetting), nil })
	if err != nil || known.Rest.Runs == 0 {
		return nil
	}
	about := time.Duration(known.Rest.Time / known.Rest.Runs * float64(time.Second)).Round(time.Millisecond)
	return &about
}
