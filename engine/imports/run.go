package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
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

	cutovers chan *cutoverRequest
	request  *cutoverRequest // the one that is being carried out
	resumed  *importer.Plan  // of an import that followed when the appliance was started
	slotMade bool            // the source may have the slot
}

// runImport copies the source and records the outcome. When the appliance stops, also
// while the database is being opened, the import stays as it is: the next start goes
// on with it or rolls it back.
func (s *Service) runImport(ctx context.Context, r *importRun) {
	defer func() {
		id := r.account.Snapshot().ID
		s.runs.Delete(id)
		s.accounts.Delete(id)
		s.accounts.Delete(r.op.ID)
		s.sizes.Delete(r.db.ID)
	}()
	ctx, ended := s.databases.Cancelable(ctx, r.op.ID)
	defer ended()
	err := s.fill(ctx, r)
	if err == nil {
		err = s.publish(ctx, r)
	}
	if err == nil {
		r.answer(nil)
		return
	}
	if s.core.Lifetime.Err() != nil {
		return
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	r.answer(err)
	if r.slotMade {
		if remains := s.dropSlot(ctx, r); remains != "" {
			err = model.Errorf(model.CodeOf(err), "%s", failure(err, remains))
		}
	}
	db := r.db
	db.Operation = r.op.ID
	if err := s.rollBack(ctx, db, r.account.Snapshot(), err, ""); err != nil {
		s.core.Log.Error("roll back an import", "database", r.db.ID, "error", err)
	}
}

// fill copies the source, and follows it if the import does, until the new database is complete.
func (s *Service) fill(ctx context.Context, r *importRun) error {
	if r.resumed != nil {
		return s.follow(ctx, r, *r.resumed, false)
	}
	keptUp := s.keepAccount(ctx, r)
	plan, err := s.importInto(ctx, r)
	keptUp()
	if err != nil || plan == nil {
		return err
	}
	if err := s.beginFollowing(ctx, r, *plan); err != nil {
		return core.ExplainDiskFull(err)
	}
	return s.follow(ctx, r, *plan, true)
}

// importInto fills the new database, which is not open to its owner yet. It returns a plan if the database follows.
func (s *Service) importInto(ctx context.Context, r *importRun) (*importer.Plan, error) {
	r.account.Enter(model.ImportChecking, "connecting to the source")
	session, err := importer.Open(ctx, r.source, r.account)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	follow := r.account.Snapshot().Follow
	if follow != nil {
		if err := session.Follow(ctx, importer.Following{Publication: follow.Publication, Slot: follow.Slot}); err != nil {
			return nil, err
		}
		defer func() { r.slotMade = session.MadeSlot() }()
	}
	pgDump := r.pgDump
	if session.Major > s.databases.Binaries.Major {
		if pgDump, err = s.PgDump(ctx, session.Major); err != nil {
			return nil, err
		}
	}
	if session.Major > r.db.Major {
		r.account.Say(model.ImportWarning, fmt.Sprintf("the source is PostgreSQL %s and the copy %s: what only the newer one has is refused here", session.Version, r.db.Version))
	}
	r.account.Enter(model.ImportChecking, "making the database")
	buildCtx, cancel := context.WithTimeout(ctx, s.databases.Timeouts.Start)
	defer cancel()
	if r.db, err = s.databases.BuildDatabase(buildCtx, r.db); err != nil {
		return nil, core.ExplainDiskFull(err)
	}
	target := func(ctx context.Context) (*pgx.Conn, error) { return s.databases.Instances.ConnectLocal(ctx, r.db.ID) }
	r.account.Enter(model.ImportChecking, "looking at the source")
	if err := s.admit(r.db, session.Size()); err != nil {
		return nil, err
	}
	if err := checkImport(ctx, session, target); err != nil {
		return nil, err
	}
	job := importer.Job{
		Owner: r.db.Owner, Target: target, PgDump: pgDump, PgDumpEnv: binaries.ToolEnv(pgDump), DumpMemory: s.dumpMemory(), SocketDir: s.relayDir(),
	}
	if follow == nil {
		return nil, core.ExplainDiskFull(session.Copy(ctx, job))
	}
	plan, err := session.CopyToFollow(ctx, job)
	return &plan, core.ExplainDiskFull(err)
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
