package engine

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// A sandbox is a database for as long as whoever asked for it holds it. It
// never lies in the trash: nothing of one is left when its holder lets go, or
// after a start of an appliance that was killed meanwhile. Its record is a
// database's like any other, so that the API and the console can work with it.

// sandboxSettings save the time in which PostgreSQL waits for the disk: what
// does not outlive its server need not survive a power cut.
func sandboxSettings() map[string]string {
	return map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
}

// NewSandbox is what a sandbox is made of.
type NewSandbox struct {
	Name string // "" means one that is free
	// Source is the URL of a database to copy, zero for none.
	Source model.Secret
}

// Sandbox is a sandbox that was made.
type Sandbox struct {
	ID         string
	Connection Connection
	// Psql is the path of a psql that knows the server, "" when there is none,
	// and PsqlEnv the variables it needs.
	Psql    string
	PsqlEnv []string
}

// SandboxCreate makes a sandbox, in the oldest project of the call's
// organization, and returns once it can be used. Progress is told how far an
// import is. The caller calls SandboxRemove when its holder is gone. When ctx ends
// before, nothing is left.
func (e *Engine) SandboxCreate(ctx context.Context, call *model.Call, in NewSandbox, progress func(model.Import)) (Sandbox, error) {
	project, err := e.oldestProject(call)
	if err != nil {
		return Sandbox{}, err
	}
	if in.Name == "" {
		in.Name = "sandbox_" + e.newID(model.ResourceNone)[16:]
	}
	if !in.Source.IsZero() {
		return e.importSandbox(ctx, call, NewImport{Project: project, Name: in.Name, SourceURL: in.Source, sandbox: true}, progress)
	}
	view, connection, err := e.DatabaseCreate(ctx, call, NewDatabase{Project: project, Name: in.Name, sandbox: true})
	return e.sandbox(ctx, view.ID, connection), err
}

func (e *Engine) oldestProject(call *model.Call) (string, error) {
	oldest := ""
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Projects().All(func(p model.Project) error {
			if p.Organization == call.Organization && oldest == "" {
				oldest = p.ID
			}
			return nil
		})
	})
	if err == nil && oldest == "" {
		err = model.Errorf(model.CodeNotFound, "the organization has no project; `holdfast admin project create` makes one")
	}
	return oldest, err
}

func (e *Engine) sandbox(ctx context.Context, id string, connection Connection) Sandbox {
	made := Sandbox{ID: id, Connection: connection}
	psql, err := e.cfg.Search.ClientTool(ctx, "psql", e.binaries.Major, e.binaries)
	if err != nil {
		e.log.Debug("find psql", "error", err)
		return made
	}
	made.Psql, made.PsqlEnv = psql, postgres.ToolEnv(psql)
	return made
}

// sandboxProgress is how often an import tells how far it is.
const sandboxProgress = 200 * time.Millisecond

func (e *Engine) importSandbox(ctx context.Context, call *model.Call, in NewImport, progress func(model.Import)) (Sandbox, error) {
	r, err := e.beginImport(ctx, call, in)
	if err != nil {
		return Sandbox{}, err
	}
	tick := time.NewTicker(sandboxProgress)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			progress(r.account.Snapshot())
		case <-ctx.Done():
			e.cancels.cancel(importClaim(r.db.ID), errInterrupted)
			<-r.over
			return Sandbox{}, errors.Join(ctx.Err(), e.SandboxRemove(context.WithoutCancel(ctx), call, r.db.ID))
		case <-r.over:
			return e.importedSandbox(ctx, call, r)
		}
	}
}

// importedSandbox is the end of an import. One that has brought over less than
// everything is no base for a test: it counts as failed.
func (e *Engine) importedSandbox(ctx context.Context, call *model.Call, r *importRun) (Sandbox, error) {
	var record model.Import
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		record, err = tx.Imports().Get(r.account.Snapshot().ID)
		return err
	}); err != nil {
		return Sandbox{}, err
	}
	switch record.Status {
	case model.ImportFailed:
		return Sandbox{}, model.Errorf(model.CodeConflict, "the import has failed: %s", record.Error)
	case model.ImportCompletedWithErrors:
		flaw := record.Errors[0]
		err := model.Errorf(model.CodeConflict, "the import has left out %d objects, the first of them %s: %s",
			len(record.Errors)+record.ErrorsBeyond, flaw.Object, flaw.Message)
		return Sandbox{}, errors.Join(err, e.SandboxRemove(ctx, call, record.Database))
	case model.ImportCompleted:
	default:
		return Sandbox{}, errInterrupted
	}
	db, err := e.record(record.Database)
	if err != nil {
		return Sandbox{}, err
	}
	connection, err := e.connection(db, true)
	return e.sandbox(ctx, db.ID, connection), err
}

// errSandboxDeleted is why a sandbox ends that was deleted like any database.
var errSandboxDeleted = model.Errorf(model.CodeConflict, "the database was deleted")

// sandboxClaim is the key under which the holder of a sandbox can be canceled.
func sandboxClaim(id string) string { return "sandbox " + id }

// SandboxHold returns a context that ends with ctx, or when somebody else deletes
// the sandbox; its cause is then a *model.Error that says so. The deletion stops
// the database only after the caller has called release.
func (e *Engine) SandboxHold(ctx context.Context, id string) (_ context.Context, release func()) {
	ctx, release = e.cancels.add(ctx, sandboxClaim(id))
	if db, err := e.record(id); err != nil || db.Status == model.DatabaseDeleting {
		// The deletion came before add. It does not wait for the caller, and the
		// caller must not wait for it either.
		gone, cancel := context.WithCancelCause(ctx)
		cancel(errSandboxDeleted)
		return gone, release
	}
	return ctx, release
}

// sandboxRetry is how often the removal of a sandbox is tried in which another
// operation is under way.
const sandboxRetry = 100 * time.Millisecond

// SandboxRemove removes a sandbox for good. One that is gone is fine. It waits
// for what else is done with it, and for room on the disk.
func (e *Engine) SandboxRemove(ctx context.Context, call *model.Call, id string) error {
	for {
		_, err := e.DatabaseDelete(ctx, call, id)
		if model.CodeOf(err) == model.CodeNotFound {
			return nil
		}
		wait, again := removeAgain(err)
		if !again {
			return err
		}
		select {
		case <-time.After(wait):
		case <-e.ctx.Done():
			return errors.Join(err, e.ctx.Err())
		}
	}
}

// removeAgain says after how long a removal that ended with err is tried again,
// false when it is not.
func removeAgain(err error) (wait time.Duration, again bool) {
	switch {
	case err == nil:
		return 0, false
	case isDiskFull(err):
		return roomInterval, true
	default:
		return sandboxRetry, model.CodeOf(err) == model.CodeConflict
	}
}

// SparesReady reports whether the next databases need not wait for initdb.
func (e *Engine) SparesReady() bool { return e.spares.Ready() >= e.cfg.Spares }

// clearSandbox removes a sandbox whose holder has gone unseen.
func (e *Engine) clearSandbox(ctx context.Context, db model.Database) error {
	e.log.Info("removing a sandbox that is left over", "database", db.ID, "name", db.Name)
	if db.Operation != "" {
		if err := e.settleOperation(ctx, db); err != nil {
			return err
		}
	}
	op, err := e.beginOperation(db, model.OperationDelete, model.DatabaseDeleting, "stopping")
	if err != nil {
		return err
	}
	db.Operation = op.ID
	return e.carryOnDelete(ctx, db)
}
