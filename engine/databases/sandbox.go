package databases

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// A sandbox is a database that exists only while its client holds it. It never goes
// to the trash: it is removed when the client releases it, or, if the appliance was
// killed, at its next start. Its record is an ordinary database's, so that the API
// and the console can work with it.

// sandboxSettings returns settings with which PostgreSQL does not wait for the
// disk: a sandbox need not survive a power failure.
func sandboxSettings() map[string]string {
	return map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
}

// NewSandbox describes a sandbox to create.
type NewSandbox struct {
	Name string // "" means a generated one
	// Source is the URL of a database to copy; zero means none.
	Source model.Secret
}

// Sandbox is a sandbox that was created.
type Sandbox struct {
	ID         string
	Connection Connection
	// Psql is the path of a psql that supports the server's version, "" if there is
	// none. PsqlEnv holds the environment variables it needs.
	Psql    string
	PsqlEnv []string
}

// OldestProject returns the id of the oldest project of the call's organization.
func (s *Service) OldestProject(call *model.Call) (string, error) {
	oldest, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (string, error) { return tx.FirstProject(call.Organization) })
	if errors.Is(err, meta.ErrNotFound) {
		err = model.Errorf(model.CodeNotFound, "the organization has no project; `holdfast admin project create` makes one")
	}
	return oldest, err
}

// Sandbox describes the sandbox in the database with the id.
func (s *Service) Sandbox(ctx context.Context, id string, connection Connection) Sandbox {
	made := Sandbox{ID: id, Connection: connection}
	psql, err := s.core.Config.Search.ClientTool(ctx, "psql", s.Binaries.Major, s.Binaries)
	if err != nil {
		s.core.Log.Debug("find psql", "error", err)
		return made
	}
	made.Psql, made.PsqlEnv = psql, binaries.ToolEnv(psql)
	return made
}

// errSandboxDeleted ends a sandbox that was deleted like any other database.
var errSandboxDeleted = model.Errorf(model.CodeConflict, "the database was deleted")

// sandboxClaim returns the key under which the holder of a sandbox can be
// cancelled.
func sandboxClaim(id string) string { return "sandbox " + id }

// SandboxHold returns a context that ends with ctx, or when another client deletes
// the sandbox; its cause is then a *model.Error that says so. The deletion stops
// the database only after the caller has called release.
func (s *Service) SandboxHold(ctx context.Context, id string) (_ context.Context, release func()) {
	ctx, release = s.core.Cancels.Add(ctx, sandboxClaim(id))
	if db, err := s.Record(id); err != nil || db.Status == model.DatabaseDeleting {
		// The deletion came before Add. It does not wait for the caller, and the caller
		// must not wait for it.
		gone, cancel := context.WithCancelCause(ctx)
		cancel(errSandboxDeleted)
		return gone, release
	}
	return ctx, release
}

// SandboxRetry is the time between two attempts to remove a sandbox while another
// operation runs on it.
const SandboxRetry = 100 * time.Millisecond

// SandboxRemove permanently removes a sandbox, and succeeds if it no longer exists.
// It waits for other operations on it, and for free space.
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

// retryRemoval returns how long to wait before retrying a removal that failed with
// err. again is false if there is to be no retry.
func retryRemoval(err error) (wait time.Duration, again bool) {
	switch {
	case err == nil:
		return 0, false
	case core.IsDiskFull(err):
		return core.DiskFullRetry, true
	default:
		return SandboxRetry, model.CodeOf(err) == model.CodeConflict
	}
}

// ClearSandbox removes a sandbox that a killed appliance left behind.
func (s *Service) ClearSandbox(ctx context.Context, db model.Database) error {
	s.core.Log.Info("removing an abandoned sandbox", "database", db.ID, "name", db.Name)
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
