package imports

import (
	"context"
	"errors"
	"fmt"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// publishImport opens the database to its owner and its allow-list, with the recorded passwords and privileges,
// whatever SQL the import has executed. Committing those waits for the disk and so makes the import's asynchronous
// commits durable.
func (s *Service) publishImport(ctx context.Context, r *importRun) error {
	ctx, cancel := context.WithTimeout(ctx, s.databases.Timeouts.Start)
	defer cancel()
	if err := s.databases.Provision(ctx, r.db.ID, r.db); err != nil {
		return fmt.Errorf("provision imported database: %w", err)
	}
	available := r.db
	available.Status = model.DatabaseAvailable
	if err := s.databases.Instances.Update(ctx, r.db.ID, databases.Access(available)); err != nil {
		return fmt.Errorf("open imported database: %w", err)
	}
	record := r.account.Snapshot()
	record.Status, record.Phase, record.Progress, record.SecondsLeft = model.ImportCompleted, "done", 100, nil
	summary := fmt.Sprintf("completed: %s, %s, %s",
		model.Count(record.TablesDone, "table"), model.Count(record.RowsCopied, "row"), model.Count(record.BytesCopied, "byte"))
	if len(record.Errors) > 0 {
		record.Status = model.ImportCompletedWithErrors
		summary += fmt.Sprintf("; %d objects are not as in the source, see errors", len(record.Errors)+record.ErrorsBeyond)
	}
	now := s.core.Clock()
	record.CompletedAt = &now
	if record.Follow != nil {
		record.Follow = r.ended(*record.Follow, now)
		summary += fmt.Sprintf("; nobody could write for %.2f s", record.Follow.Pause.Seconds())
	}
	record.Log = append(record.Log, model.ImportLine{At: now, Level: model.ImportInfo, Message: summary})
	call := s.importEnd(record)
	call.Note("status", string(record.Status))
	if err := s.core.Change(call, func(tx *meta.Tx) error {
		if _, err := s.databases.ReleaseDatabase(tx, r.op, nil); err != nil {
			return err
		}
		if err := tx.Databases().Change(r.db.ID, func(d *model.Database) { d.Following = false }); err != nil {
			return err
		}
		return errors.Join(replaceImport(tx, record), notePhase(tx, r.op.ID, record.Phase))
	}); err != nil {
		return err
	}
	s.databases.SampleOne(ctx, available)
	return nil
}

// notePhase sets the last phase of an import's operation: while the import runs, its account has it.
func notePhase(tx *meta.Tx, op, phase string) error {
	return tx.Operations().Change(op, func(o *model.DatabaseOperation) { o.Phase = phase })
}

func (s *Service) importEnd(record model.Import) *model.Call {
	resource := model.Resource{Type: model.ResourceImport, ID: record.ID, Name: record.Name}
	return s.core.System(model.ActionImportEnd, record.Organization, resource)
}

// rollBack removes everything that a failed import created, so that its name is free again, and records the cause. The
// import's record, but not its operation, also says what may remain until that is known, if remains is not empty.
func (s *Service) rollBack(ctx context.Context, db model.Database, record model.Import, cause error, remains string) error {
	s.core.Log.Warn("import failed", "import", record.ID, "database", db.ID, "name", db.Name, "error", cause)
	now := s.core.Clock()
	record.Status, record.SecondsLeft, record.CompletedAt = model.ImportFailed, nil, &now
	record.Error = failure(cause, remains)
	if record.Follow != nil {
		follow := *record.Follow
		follow.SourceURL, follow.Lag, follow.Trouble = nil, nil, ""
		record.Follow = &follow
	}
	record.Log = append(record.Log, model.ImportLine{At: now, Level: model.ImportError, Message: "failed: " + record.Error})
	return s.databases.ForgetDatabase(ctx, s.importEnd(record), db, cause, func(tx *meta.Tx) error {
		if db.Operation == "" {
			return replaceImport(tx, record)
		}
		return errors.Join(replaceImport(tx, record), notePhase(tx, db.Operation, record.Phase))
	})
}

// failure returns what the record of a failed import says: the cause, and what remains, if anything does.
func failure(cause error, remains string) string {
	text := databases.OperationMessage(cause)
	if remains != "" {
		text += "; " + remains
	}
	return text
}
