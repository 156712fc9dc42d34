package engine

import (
	"context"
	"errors"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// DatabaseRestart shuts the instance down, ending its sessions, and returns
// once it accepts connections again.
func (e *Engine) DatabaseRestart(ctx context.Context, call *model.Call, id string) (DatabaseView, error) {
	if err := e.onlyOnce(call); err != nil {
		return DatabaseView{}, err
	}
	db, release, err := e.claimWhole(call, id, "a restart")
	if err != nil {
		return DatabaseView{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.waits.stop+startTimeout)
	defer cancel()
	op, err := e.beginOperation(db, model.OperationRestart, model.DatabaseRestarting, "restarting")
	if err != nil {
		return DatabaseView{}, noRoom(err)
	}
	if _, err := e.renewFor(db); err != nil { // the old one may do for a while
		e.log.Error("renew certificate at a restart", "database", id, "error", err)
	}
	restartErr := e.instances.Restart(ctx, id, e.waits.stop)
	switch {
	case errors.Is(restartErr, postgres.ErrUnknownInstance): // it never came up
		restartErr = e.startDatabase(ctx, db)
	case restartErr == nil:
		e.setRolesOrLater(ctx, db)
	}
	restartErr = e.doesNotStart(restartErr)
	db, err = e.concludeOperation(call, op, restartErr)
	if restartErr = errors.Join(restartErr, err); restartErr != nil {
		return DatabaseView{}, restartErr
	}
	return e.view(db)
}

// doesNotStart tells a client why an instance did not start, in the words that
// its status gives as the reason.
func (e *Engine) doesNotStart(err error) error {
	if err == nil || model.CodeOf(err) != model.CodeInternal {
		return err
	}
	return &model.Error{Code: model.CodeConflict, Message: "the database does not start: " + e.explainDown(err.Error()), Err: err}
}
