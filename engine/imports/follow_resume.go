package imports

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"holdfast/engine/core"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// goesOn reports whether an import that was interrupted goes on following its source: the copy was complete, and is there.
// With older metadata nothing says what has become of the database since.
func (s *Service) goesOn(db model.Database, record model.Import) bool {
	if record.Follow == nil || record.Status != model.ImportFollowing && record.Status != model.ImportCuttingOver || s.databases.OlderMetadata {
		return false
	}
	_, err := os.Lstat(s.databases.DataDirectory(db.ID, db.Generation))
	return err == nil
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
			if err := s.databases.MarkUnrecovered(db, err); err != nil {
				return err
			}
		}
	}
	return nil
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
func (s *Service) dropLeftSlot(record model.Import) {
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
				i.Error = failure(errImportInterrupted, remains)
			})
		}); err != nil {
			s.core.Log.Error("record what became of a slot", "import", record.ID, "error", err)
		}
	})
}
