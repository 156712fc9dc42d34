package recovery

import (
	"context"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BranchReset starts to replace the data of a branch by that of its parent at a moment, zero for now. It works as a
// restore in place: the branch stays up until the switch, its URL and passwords stay, and the data that is replaced is
// kept for an undo.
func (s *Service) BranchReset(ctx context.Context, call *model.Call, id string, at time.Time) (Branch, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return Branch{}, err
	}
	var src *branchSource
	op, err := s.beginSwitch(call, id, model.OperationReset, "checking", func(db model.Database, op *model.DatabaseOperation) (stage, error) {
		parent, err := s.parentOf(db)
		if err != nil {
			return stage{}, err
		}
		if src, err = s.sourceOfBranch(ctx, parent, at); err != nil {
			return stage{}, err
		}
		if err := s.reserveForBranch(op.ID, src); err != nil {
			return stage{branch: src}, err
		}
		now := *op
		*op = s.operationOf(db, model.OperationReset, src)
		op.ID, op.StartedAt = now.ID, now.StartedAt
		op.Generation = db.LastGeneration() + 1
		call.Note("parent", parent.ID)
		build := func(ctx context.Context) error {
			return s.buildBranch(ctx, src, op.ID, s.databases.DataDirectory(op.Database, op.Generation))
		}
		return stage{build: build, branch: src}, nil
	})
	if err != nil {
		return Branch{}, err
	}
	made := Branch{Started: op, Method: src.method, Reason: src.reason, Estimated: src.estimated}
	db, err := s.databases.Record(id)
	if err == nil {
		made.View, err = s.databases.View(db)
	}
	return made, err
}

// parentOf returns the parent of a branch, or an error if it is none or the parent cannot be its source.
func (s *Service) parentOf(db model.Database) (model.Database, error) {
	if db.Parent == "" {
		return model.Database{}, model.Errorf(model.CodeConflict, "%s is not a branch", db.Name)
	}
	parent, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Database, error) {
		return databases.DatabaseOf(tx, db.Organization, db.Parent)
	})
	if model.CodeOf(err) == model.CodeNotFound {
		return parent, model.Errorf(model.CodeConflict, "the parent of %s was deleted", db.Name)
	}
	if err == nil && parent.Major != db.Major {
		return parent, model.Errorf(model.CodeConflict, "the parent runs PostgreSQL %d and the branch %d: make another branch", parent.Major, db.Major)
	}
	return parent, err
}
