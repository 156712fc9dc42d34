package imports

import (
	"context"
	"fmt"
	"os"

	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// beginFollowing makes the copy durable, then what the cutover needs, then records that the new database follows: from
// then on a restart goes on from here.
func (s *Service) beginFollowing(ctx context.Context, r *importRun, plan importer.Plan) error {
	if err := s.databases.Checkpoint(ctx, r.db); err != nil {
		return fmt.Errorf("make the copy durable: %w", err)
	}
	data, err := plan.Encode()
	if err != nil {
		return err
	}
	if err := durable.WriteFile(s.planPath(r.db), data, 0o600); err != nil {
		return fmt.Errorf("write what the cutover needs: %w", err)
	}
	return s.enter(r, model.ImportFollowing, phaseFollowing)
}

const phaseFollowing = "following the source"

// enter sets the status of an import and records it.
func (s *Service) enter(r *importRun, status model.ImportStatus, phase string) error {
	r.account.Enter(status, phase)
	return s.recordNow(r)
}

func (s *Service) recordNow(r *importRun) error {
	record := r.account.Snapshot()
	return s.core.Meta.Update(func(tx *meta.Tx) error { return replaceImport(tx, record) })
}

// readPlan reads what beginFollowing wrote.
func (s *Service) readPlan(db model.Database) (importer.Plan, error) {
	data, err := os.ReadFile(s.planPath(db))
	if err != nil {
		return importer.Plan{}, fmt.Errorf("read what the cutover needs: %w", err)
	}
	return importer.DecodePlan(data)
}
