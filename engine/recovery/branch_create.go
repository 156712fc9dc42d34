package recovery

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewBranch describes a branch to make.
type NewBranch struct {
	Name      string
	At        time.Time     // the moment of the parent; zero for now
	ExpiresIn time.Duration // 0 for never
	// SleepAfter is how long it must be unused before it sleeps, 0 for never, nil for databases.BranchSleepAfter if it can.
	SleepAfter *time.Duration
}

// Branch is a branch that is being made or reset.
type Branch struct {
	databases.View
	Started   model.DatabaseOperation
	Method    BranchMethod
	Reason    string         // why it is a restore
	Estimated *time.Duration // nil if nothing comparable was measured
}

// BranchCreate starts to make a database that begins as its parent was at a moment, and returns it at once. A branch of
// the present has everything that the parent had acknowledged before the request. If the appliance dies before the
// branch is available, the next start removes it.
func (s *Service) BranchCreate(ctx context.Context, call *model.Call, parent string, in NewBranch) (Branch, error) {
	if err := cmp.Or(model.ValidateDatabaseName("name", in.Name), s.checkExpiresIn(in.ExpiresIn)); err != nil {
		return Branch{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return Branch{}, err
	}
	from, err := s.databases.Database(call, parent)
	if err != nil {
		return Branch{}, err
	}
	if _, err := s.databases.SleepOfBranch(from, in.SleepAfter); err != nil {
		return Branch{}, err
	}
	src, err := s.sourceOfBranch(ctx, from, in.At)
	if err != nil {
		return Branch{}, core.ExplainDiskFull(err)
	}
	made, release, err := s.recordBranch(call, src, in)
	if err != nil {
		src.close()
		return Branch{}, core.ExplainDiskFull(err)
	}
	db, op := made.Database, made.Started
	s.core.Work.Go(func() {
		defer release()
		defer src.close()
		defer s.core.Space.Release(op.ID)
		defer s.databases.Progress.Drop(op.ID)
		s.runBranch(s.core.Lifetime, db, op, src)
	})
	made.View, err = s.databases.View(db)
	return made, err
}

func (s *Service) checkExpiresIn(in time.Duration) error {
	if in == 0 {
		return nil
	}
	at := s.core.Clock().Add(in)
	return s.databases.CheckExpiry("expires_in", &at)
}

// recordBranch reserves the space for a branch and commits the records of it and of its operation. The caller releases the claim
// of the branch.
func (s *Service) recordBranch(call *model.Call, src *branchSource, in NewBranch) (made Branch, release func(), err error) {
	parent := src.parent
	db := s.databases.NewDatabase(call, databases.NewDatabase{
		Project: parent.Project, Name: in.Name, User: parent.Owner, Password: model.GeneratePassword(core.RandomBytes()),
	})
	db.Major, db.Version = src.version()
	db.Parent = parent.ID
	if !src.moment.IsZero() {
		db.BranchedAt = &src.moment
	}
	if in.ExpiresIn > 0 {
		at := s.core.RetentionClock().Add(in.ExpiresIn).Truncate(time.Microsecond)
		db.ExpiresAt = &at
	}
	op := s.operationOf(parent, model.OperationBranch, src)
	if err := s.reserveForBranch(op.ID, src); err != nil {
		return made, nil, err
	}
	defer func() {
		if err != nil {
			s.core.Space.Release(op.ID)
		}
	}()
	op.NewDatabase, db.Operation = db.ID, op.ID
	call.Note("branch", db.ID)
	call.Note("name", db.Name)
	_, release, err = s.databases.ClaimDatabase(call, db, "the creation", func(insert func(*meta.Tx) error) error {
		return s.core.Change(call, func(tx *meta.Tx) error {
			now, err := databases.DatabaseOf(tx, parent.Organization, parent.ID)
			if err != nil {
				return err
			}
			if now.Status == model.DatabaseDeleting {
				return databases.NotAvailable(now, now.Status, now.StatusReason)
			}
			if err := refuseRemoved(tx, src.plan); err != nil {
				return err
			}
			sleepAfter, err := s.databases.SleepOfBranch(now, in.SleepAfter)
			if err != nil {
				return err
			}
			made.Database, err = insertCopy(tx, insert, db.ID, func(d *model.Database) {
				copyProperties(d, now)
				d.SleepAfter = sleepAfter
			})
			if err != nil {
				return err
			}
			return tx.Operations().Insert(op)
		})
	})
	made.Started, made.Method, made.Reason, made.Estimated = op, src.method, src.reason, src.estimated
	return made, release, err
}

// operationOf returns the record of an operation on a database that takes its data from a source.
func (s *Service) operationOf(db model.Database, t model.OperationType, src *branchSource) model.DatabaseOperation {
	op := s.databases.NewOperation(db, t, src.phase())
	if src.plan != nil {
		src.plan.describe(&op)
	}
	return op
}

// runBranch builds the branch and records the outcome. When the appliance stops, the next start rolls it back.
func (s *Service) runBranch(ctx context.Context, db model.Database, op model.DatabaseOperation, src *branchSource) {
	began := time.Now()
	building, ended := s.databases.Cancelable(ctx, op.ID)
	defer ended()
	err := because(building, ctx, s.buildNewBranch(building, db, op, src))
	if err == nil {
		s.noteClone(src, time.Since(began))
		src.close() // before a client that sees the end begins something else on the parent
		err = s.core.Meta.Update(func(tx *meta.Tx) error {
			if err := tx.Databases().Change(db.ID, func(d *model.Database) { d.BranchedAt = &src.moment }); err != nil {
				return err
			}
			_, err := s.databases.ReleaseDatabase(tx, op, nil)
			return err
		})
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.abandonNew(building, ctx, db, op, err)
		return
	}
	if err := s.ReceiveWAL(db); err != nil {
		s.core.Log.Error("receive WAL", "database", db.ID, "error", err)
	}
	s.core.Background(func(ctx context.Context) { s.databases.SampleOne(ctx, db) })
}

// buildNewBranch makes the branch's data directory, recovers it and starts its instance.
func (s *Service) buildNewBranch(ctx context.Context, db model.Database, op model.DatabaseOperation, src *branchSource) error {
	if err := os.MkdirAll(s.databases.DatabaseDirectory(db.ID), 0o700); err != nil {
		return fmt.Errorf("make database directory: %w", err)
	}
	if err := s.buildBranch(ctx, src, op.ID, s.databases.DataDirectory(db.ID, db.Generation)); err != nil {
		return err
	}
	if err := s.recoverPrivately(ctx, db, op, src.plan, s.databases.EndCopiedPrepared); err != nil {
		return err
	}
	_, err := s.databases.StartInstance(ctx, db)
	return err
}
