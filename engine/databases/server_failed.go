package databases

import (
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// ServerFailed returns the error for a client whose request failed because the server
// died, or because it had no free connection for the appliance, or because the disk is
// full. It returns every other error unchanged. The supervisor restarts a server that died.
func ServerFailed(err error) error {
	err = core.ExplainDiskFull(err)
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
