package imports

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// SandboxCreate creates a sandbox in the oldest project of the call's organization and returns once it is usable. It
// reports the state of an import to progress. The caller calls SandboxRemove when the holder has disconnected. If ctx
// ends first, nothing remains.
func (s *Service) SandboxCreate(ctx context.Context, call *model.Call, in databases.NewSandbox, progress func(model.Import)) (databases.Sandbox, error) {
	project, err := s.databases.OldestProject(call)
	if err != nil {
		return databases.Sandbox{}, err
	}
	if in.Name == "" {
		in.Name = "sandbox_" + s.core.NewID(model.ResourceNone)[16:]
	}
	if !in.Source.IsZero() {
		return s.importSandbox(ctx, call, NewImport{Project: project, Name: in.Name, SourceURL: in.Source, sandbox: true}, progress)
	}
	view, connection, err := s.databases.Create(ctx, call, databases.NewDatabase{Project: project, Name: in.Name, Sandbox: true})
	return s.databases.Sandbox(ctx, view.ID, connection), err
}

// sandboxProgress is how often an import reports its progress.
const sandboxProgress = 200 * time.Millisecond

func (s *Service) importSandbox(ctx context.Context, call *model.Call, in NewImport, progress func(model.Import)) (databases.Sandbox, error) {
	r, err := s.beginImport(ctx, call, in)
	if err != nil {
		return databases.Sandbox{}, err
	}
	tick := time.NewTicker(sandboxProgress)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			progress(r.account.Snapshot())
		case <-ctx.Done():
			s.core.Cancels.Cancel(databases.ImportClaim(r.db.ID), core.ErrInterrupted)
			<-r.over
			return databases.Sandbox{}, errors.Join(ctx.Err(), s.databases.SandboxRemove(context.WithoutCancel(ctx), call, r.db.ID))
		case <-r.over:
			return s.importedSandbox(ctx, call, r)
		}
	}
}

// importedSandbox returns the sandbox of an import that has ended. An import that left objects out counts as failed,
// because tests need all of them.
func (s *Service) importedSandbox(ctx context.Context, call *model.Call, r *importRun) (databases.Sandbox, error) {
	record, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Import, error) { return tx.Imports().Get(r.account.Snapshot().ID) })
	if err != nil {
		return databases.Sandbox{}, err
	}
	switch record.Status {
	case model.ImportFailed:
		return databases.Sandbox{}, model.Errorf(model.CodeConflict, "the import has failed: %s", record.Error)
	case model.ImportCompletedWithErrors:
		flaw := record.Errors[0]
		err := model.Errorf(model.CodeConflict, "the import has left out %d objects, the first of them %s: %s",
			len(record.Errors)+record.ErrorsBeyond, flaw.Object, flaw.Message)
		return databases.Sandbox{}, errors.Join(err, s.databases.SandboxRemove(ctx, call, record.Database))
	case model.ImportCompleted:
	default:
		return databases.Sandbox{}, core.ErrInterrupted
	}
	db, err := s.databases.Record(record.Database)
	if err != nil {
		return databases.Sandbox{}, err
	}
	connection, err := s.databases.ConnectionOf(db, true)
	return s.databases.Sandbox(ctx, db.ID, connection), err
}
