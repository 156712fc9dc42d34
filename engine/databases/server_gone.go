package databases

import (
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// serverGone returns the error for a client whose request failed because the server
// died, or because it had no free connection for the appliance. It returns every
// other error unchanged. The supervisor restarts a server that died.
func serverGone(err error) error {
	switch {
	case err == nil || model.CodeOf(err) != model.CodeInternal:
		return err
	case postgres.IsFull(err):
		return &model.Error{Code: model.CodeConflict, Message: "all connections of this database are taken, those that are being opened " +
			"among them; try again, and bound the pools of its clients below max_connections", Err: err}
	case !postgres.IsGone(err):
		return err
	}
	return &model.Error{Code: model.CodeConflict, Message: "the database's server went down meanwhile; try again when it is available", Err: err}
}
