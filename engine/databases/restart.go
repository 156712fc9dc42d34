package databases

import (
	"context"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Restart restarts the instance with the settings and libraries of its record, which
// ends its sessions, and returns once it accepts connections again.
func (s *Service) Restart(ctx context.Context, call *model.Call, id string) (View, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return View{}, err
	}
	db, release, err := s.ClaimExclusively(call, id, "a restart")
	if err != nil {
		return View{}, err
	}
	defer release()
	return s.restartClaimed(ctx, call, db)
}

// restartClaimed is Restart of a database that the caller has claimed with its backups.
func (s *Service) restartClaimed(ctx context.Context, call *model.Call, db model.Database) (View, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Stop+s.Timeouts.Start)
	defer cancel()
	op, err := s.beginOperation(db, model.OperationRestart, model.DatabaseRestarting, "restarting")
	if err != nil {
		return View{}, core.ExplainDiskFull(err)
	}
	if _, err := s.renewFor(db); err != nil { // the old certificate may still be valid
		s.core.Log.Error("renew certificate at a restart", "database", db.ID, "error", err)
	}
	defer s.Progress.Drop(op.ID)
	bin, found := s.Majors.Newest(ctx, db.Major)
	restartErr := s.reconfigure(ctx, db, func(spec *postgres.Spec) { // it has stopped
		s.Progress.Set(op.ID, 1, 2)
		if found { // perhaps a newer minor version, elsewhere
			spec.Bin = bin
		}
	})
	switch {
	case errors.Is(restartErr, postgres.ErrUnknownInstance): // it never started
		restartErr = s.StartDatabase(ctx, db)
	case restartErr == nil:
		s.Progress.Set(op.ID, 9, 10)
		s.setRolesOrRetryLater(ctx, db)
		if found {
			s.noteNewBinaries(db, bin.Version)
		}
	}
	restartErr = s.doesNotStart(restartErr)
	db, err = s.ConcludeOperation(call, op, restartErr)
	if restartErr = errors.Join(restartErr, err); restartErr != nil {
		return View{}, restartErr
	}
	return s.View(db)
}

// noteNewBinaries records the version that a restart brought, so that its answer and the advice have it before the next
// sample does.
func (s *Service) noteNewBinaries(db model.Database, version string) {
	if err := s.noteVersion(db, version); err != nil {
		s.core.Log.Error("record the server's version", "database", db.ID, "error", err)
	}
}

// doesNotStart returns the error for a client whose instance did not start, with
// the same reason as the database's status.
func (s *Service) doesNotStart(err error) error {
	if err == nil || model.CodeOf(err) != model.CodeInternal {
		return err
	}
	return &model.Error{Code: model.CodeConflict, Message: "the database does not start: " + s.core.ExplainDown(err.Error()), Err: err}
}
