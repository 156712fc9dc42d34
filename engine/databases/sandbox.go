package databases

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/core"
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

func (s *Service) OldestProject(call *model.Call) (string, error) {
	oldest := ""
	err := s.core.Meta.View(func(tx *meta.Tx) error {
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

func (s *Service) Sandbox(ctx context.Context, id string, connection Connection) Sandbox {
	made := Sandbox{ID: id, Connection: connection}
	psql, err := s.core.Config.Search.ClientTool(ctx, "psql", s.Binaries.Major, s.Binaries)
	if err != nil {
		s.core.Log.Debug("find psql", "error", err)
		return made
	}
	made.Psql, made.PsqlEnv = psql, postgres.ToolEnv(psql)
	return made
}

// errSandboxDeleted is why a sandbox ends that was deleted like any database.
var errSandboxDeleted = model.Errorf(model.CodeConflict, "the database was deleted")

// sandboxClaim is the key under which the holder of a sandbox can be canceled.
func sandboxClaim(id string) string { return "sandbox " + id }

// SandboxHold returns a context that ends with ctx, or when somebody else deletes
// the sandbox; its cause is then a *model.Error that says so. The deletion stops
// the database only after the caller has called release.
func (s *Service) SandboxHold(ctx context.Context, id string) (_ context.Context, release func()) {
	ctx, release = s.core.Cancels.Add(ctx, sandboxClaim(id))
	if db, err := s.Record(id); err != nil || db.Status == model.DatabaseDeleting {
		// The deletion came before add. It does not wait for the caller, and the
		// caller must not wait for it either.
		gone, cancel := context.WithCancelCause(ctx)
		cancel(errSandboxDeleted)
		return gone, release
	}
	return ctx, release
}

// SandboxRetry is how often the removal of a sandbox is tried in which another
// operation is under way.
const SandboxRetry = 100 * time.Millisecond

// SandboxRemove removes a sandbox for good. One that is gone is fine. It waits
// for what else is done with it, and for room on the disk.
func (s *Service) SandboxRemove(ctx context.Context, call *model.Call, id string) error {
	for {
		_, err := s.Delete(ctx, call, id)
		if model.CodeOf(err) == model.CodeNotFound {
			return nil
		}
		wait, again := retryRemoval(err)
		if !again {
			return err
		}
		select {
		case <-time.After(wait):
		case <-s.core.Lifetime.Done():
			return errors.Join(err, s.core.Lifetime.Err())
		}
	}
}

// retryRemoval says after how long a removal that ended with err is tried again,
// false when it is not.
func retryRemoval(err error) (wait time.Duration, again bool) {
	switch {
	case err == nil:
		return 0, false
	case core.IsDiskFull(err):
		return core.RoomInterval, true
	default:
		return SandboxRetry, model.CodeOf(err) == model.CodeConflict
	}
}

// SparesReady reports whether the next databases need not wait for initdb.
func (s *Service) SparesReady() bool { return s.Spares.Ready() >= s.core.Config.Spares }

// ClearSandbox removes a sandbox whose holder has gone unseen.
func (s *Service) ClearSandbox(ctx context.Context, db model.Database) error {
	s.core.Log.Info("removing a sandbox that is left over", "database", db.ID, "name", db.Name)
	if db.Operation != "" {
		if err := s.RecoverOperation(ctx, db); err != nil {
			return err
		}
	}
	op, err := s.beginOperation(db, model.OperationDelete, model.DatabaseDeleting, "stopping")
	if err != nil {
		return err
	}
	db.Operation = op.ID
	return s.ResumeDelete(ctx, db)
}
