package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// importRun is a running import.
type importRun struct {
	db      model.Database
	op      model.DatabaseOperation
	source  importer.Source
	pgDump  string
	account *importer.Account
	over    chan struct{} // closed when the import has ended
}

// runImport copies the source and records the outcome. When the appliance stops,
// the import stays as it is: the next start rolls it back.
func (s *Service) runImport(ctx context.Context, r *importRun) {
	defer func() {
		s.accounts.Delete(r.account.Snapshot().ID)
		s.accounts.Delete(r.op.ID)
		s.sizes.Delete(r.db.ID)
	}()
	ctx, ended := s.databases.Cancelable(ctx, r.op.ID)
	defer ended()
	keptUp := s.keepAccount(ctx, r)
	err := s.importInto(ctx, r)
	keptUp()
	if s.core.Lifetime.Err() != nil {
		return
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err == nil {
		if err = s.publishImport(ctx, r); err == nil {
			return
		}
	}
	db := r.db
	db.Operation = r.op.ID
	if err := s.rollBack(ctx, db, r.account.Snapshot(), err); err != nil {
		s.core.Log.Error("roll back an import", "database", r.db.ID, "error", err)
	}
}

// importInto fills the new database, which is not open to its owner yet.
func (s *Service) importInto(ctx context.Context, r *importRun) error {
	r.account.Enter(model.ImportChecking, "connecting to the source")
	session, err := importer.Open(ctx, r.source, r.account)
	if err != nil {
		return err
	}
	defer session.Close()
	pgDump := r.pgDump
	if session.Major > s.databases.Binaries.Major {
		if pgDump, err = s.PgDump(ctx, session.Major); err != nil {
			return err
		}
		r.account.Say(model.ImportWarning, fmt.Sprintf("the source is PostgreSQL %s and the copy %s: what only the newer one has is refused here", session.Version, s.databases.Binaries.Version))
	}
	r.account.Enter(model.ImportChecking, "making the database")
	buildCtx, cancel := context.WithTimeout(ctx, s.databases.Timeouts.Start)
	defer cancel()
	if r.db, err = s.databases.BuildDatabase(buildCtx, r.db); err != nil {
		return core.ExplainDiskFull(err)
	}
	target := func(ctx context.Context) (*pgx.Conn, error) { return s.databases.Instances.ConnectLocal(ctx, r.db.ID) }
	r.account.Enter(model.ImportChecking, "looking at the source")
	if err := s.admit(r.db, session.Size()); err != nil {
		return err
	}
	if err := checkImport(ctx, session, target); err != nil {
		return err
	}
	return core.ExplainDiskFull(session.Copy(ctx, importer.Job{
		Owner: r.db.Owner, Target: target, PgDump: pgDump, PgDumpEnv: binaries.ToolEnv(pgDump), DumpMemory: s.dumpMemory(), SocketDir: s.relayDir(),
	}))
}

// dumpMemory returns how much memory pg_dump may take, in bytes: the source determines how much it needs. It is a
// quarter of the machine's memory, within least and most.
func (s *Service) dumpMemory() int64 {
	const least, most = 256 << 20, 2 << 30
	host, err := core.MeasureHost(s.core.Config.DataDir)
	if err != nil || host.MemoryTotal == nil {
		return least
	}
	return min(max(*host.MemoryTotal/4, least), most)
}

func checkImport(ctx context.Context, session *importer.Session, target importer.Target) error {
	conn, err := target(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return session.Check(ctx, conn)
}

// accountInterval is how often the account of a running import is recorded.
const accountInterval = 2 * time.Second

// keepAccount records the account of a running import at intervals, so that it survives a crash. stop ends this and
// waits for it.
func (s *Service) keepAccount(ctx context.Context, r *importRun) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(accountInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			record := r.account.Snapshot()
			if err := s.core.Meta.Update(func(tx *meta.Tx) error { return replaceImport(tx, record) }); err != nil {
				s.core.Log.Warn("record the account of an import", "import", record.ID, "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func replaceImport(tx *meta.Tx, record model.Import) error {
	return tx.Imports().Change(record.ID, func(i *model.Import) { *i = record })
}

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
	record.Log = append(record.Log, model.ImportLine{At: now, Level: model.ImportInfo, Message: summary})
	call := s.importEnd(record)
	call.Note("status", string(record.Status))
	if err := s.core.Change(call, func(tx *meta.Tx) error {
		if _, err := s.databases.ReleaseDatabase(tx, r.op, nil); err != nil {
			return err
		}
		return replaceImport(tx, record)
	}); err != nil {
		return err
	}
	s.databases.SampleOne(ctx, available)
	return nil
}

func (s *Service) importEnd(record model.Import) *model.Call {
	resource := model.Resource{Type: model.ResourceImport, ID: record.ID, Name: record.Name}
	return s.core.System(model.ActionImportEnd, record.Organization, resource)
}

// rollBack removes everything that a failed import created, so that its name is free again, and records the cause.
func (s *Service) rollBack(ctx context.Context, db model.Database, record model.Import, cause error) error {
	s.core.Log.Warn("import failed", "import", record.ID, "database", db.ID, "name", db.Name, "error", cause)
	now := s.core.Clock()
	record.Status, record.SecondsLeft, record.CompletedAt = model.ImportFailed, nil, &now
	record.Error = databases.OperationMessage(cause)
	record.Log = append(record.Log, model.ImportLine{At: now, Level: model.ImportError, Message: "failed: " + record.Error})
	return s.databases.ForgetDatabase(ctx, s.importEnd(record), db, cause, func(tx *meta.Tx) error { return replaceImport(tx, record) })
}
