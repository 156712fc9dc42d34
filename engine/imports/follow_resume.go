package imports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// endsNow returns why an import that was interrupted is rolled back, nil if it goes on following its source: the copy was
// complete, and is there with what the cutover needs, and nobody has cancelled it. With older metadata nothing says what has
// become of the database since. A cutover that was decided goes on in any case.
func (s *Service) endsNow(db model.Database, record model.Import) (cause, err error) {
	if record.Follow == nil || record.Status != model.ImportFollowing && record.Status != model.ImportCuttingOver || s.databases.OlderMetadata {
		return errImportInterrupted, nil
	}
	switch _, err := os.Lstat(s.databases.DataDirectory(db.ID, db.Generation)); {
	case errors.Is(err, fs.ErrNotExist):
		return errImportInterrupted, nil
	case err != nil:
		return nil, fmt.Errorf("look for the new database: %w", err)
	case record.Follow.Cut:
		return nil, nil
	}
	op, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.DatabaseOperation, error) { return tx.Operations().Get(db.Operation) })
	if err != nil {
		return nil, err
	}
	if op.CancelledBy != nil {
		return databases.Cancelled(*op.CancelledBy), nil
	}
	_, err = s.readPlan(db)
	if errors.Is(err, importer.ErrPlan) || errors.Is(err, fs.ErrNotExist) {
		return model.Errorf(model.CodeConflict, "the new database cannot follow any more: %v; what was copied is removed and the name is free again: start the import again", err), nil
	}
	return nil, err
}

// Resume goes on with the imports that followed their sources when the appliance ended. It must run before the first
// request is served.
func (s *Service) Resume() error {
	dbs, err := s.databases.KeptDatabases()
	if err != nil {
		return err
	}
	for _, db := range dbs {
		if db.Status != model.DatabaseImporting || s.core.Claims.Holds(db.ID, core.Unrecovered) {
			continue
		}
		if err := s.resume(db); err != nil {
			if err := errors.Join(s.databases.MarkUnrecovered(db, err), s.noteUnresumed(db, err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteUnresumed records why an import does not go on before the next start.
func (s *Service) noteUnresumed(db model.Database, cause error) error {
	record, err := s.importOf(db)
	if err != nil || record.Follow == nil {
		return nil // the cause says so
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Imports().Change(record.ID, func(i *model.Import) {
			follow := *i.Follow
			follow.Trouble = "it does not go on until the appliance is started again: " + databases.OperationMessage(cause)
			i.Follow = &follow
		})
	})
}

func (s *Service) resume(db model.Database) error {
	record, err := s.importOf(db)
	if err != nil {
		return err
	}
	plan, err := s.readPlan(db)
	if record.Follow.Cut && errors.Is(err, fs.ErrNotExist) { // it is done
		err = nil
	}
	if err != nil {
		return err
	}
	source, err := s.sourceOf(record)
	if err != nil {
		return err
	}
	op, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.DatabaseOperation, error) { return tx.Operations().Get(db.Operation) })
	if err != nil {
		return err
	}
	release, err := s.core.Claims.Take(db.ID, "an import")
	if err != nil {
		return err
	}
	account := importer.NewAccount(record, s.core.Clock)
	account.Say(model.ImportInfo, "the appliance was started again: going on")
	if record.Status == model.ImportCuttingOver && !record.Follow.Cut {
		account.Enter(model.ImportFollowing, phaseFollowing)
		account.ChangeFollow(func(follow *model.ImportFollow) { follow.CutoverStartedAt = nil })
		account.Say(model.ImportWarning, "the appliance was stopped during the cutover, before it was decided: the database follows on; ask for the cutover again")
	}
	s.begin(&importRun{db: db, op: op, source: source, account: account, resumed: &plan, slotMade: true}, release)
	return nil
}

// dropLeftSlot drops, in the background, the slot of an import that is rolled back at a start, and records the outcome.
func (s *Service) dropLeftSlot(record model.Import, cause error) {
	source, err := s.sourceOf(record)
	if err != nil {
		s.core.Log.Error("drop the slot of an interrupted import", "import", record.ID, "error", err)
		return
	}
	r := &importRun{source: source, account: importer.NewAccount(record, s.core.Clock)}
	s.core.Background(func(ctx context.Context) {
		remains := s.dropSlot(ctx, r)
		line := r.account.Snapshot().Log
		if err := s.core.Meta.Update(func(tx *meta.Tx) error {
			return tx.Imports().Change(record.ID, func(i *model.Import) {
				i.Log = append(i.Log, line[len(line)-1])
				i.Error = failure(cause, remains)
			})
		}); err != nil {
			s.core.Log.Error("record what became of a slot", "import", record.ID, "error", err)
		}
	})
}
