package client

import (
	"context"
	"net/http"

	"holdfast/server/api/wire"
)

// GetRecovery returns the state of a database's recovery.
func (c *Client) GetRecovery(ctx context.Context, database string) (wire.Recovery, error) {
	return one[wire.Recovery](ctx, c, "GET", path("databases", database, "recovery"), nil)
}

// RequestRestore begins to restore a database to a point in time. It ignores
// in.DryRun; PlanRestore sets it.
func (c *Client) RequestRestore(ctx context.Context, database string, in wire.RequestRestore) (wire.Operation, error) {
	in.DryRun = nil
	return one[wire.Operation](ctx, c, "POST", path("databases", database, "recovery", "restore-request"), in)
}

// PlanRestore returns what RequestRestore would do, and changes nothing.
func (c *Client) PlanRestore(ctx context.Context, database string, in wire.RequestRestore) (wire.RestorePlan, error) {
	in.DryRun = new(true)
	return one[wire.RestorePlan](ctx, c, "POST", path("databases", database, "recovery", "restore-request"), in)
}

// UndoRestore begins to bring back the data that the last restore replaced.
func (c *Client) UndoRestore(ctx context.Context, database string) (wire.Operation, error) {
	return one[wire.Operation](ctx, c, "POST", path("databases", database, "recovery", "undo"), nil)
}

// AwaitOperation waits for an operation on a database to end, tells seen how
// far it is, and returns how it ended. CodeNotFound says that nothing is known
// of it: its database was deleted.
func (c *Client) AwaitOperation(ctx context.Context, op wire.Operation, seen func(wire.Operation)) (wire.Operation, error) {
	return await(ctx,
		func(ctx context.Context) (wire.Operation, error) { return c.operation(ctx, op) },
		func(op wire.Operation) bool {
			return op.Status == wire.OperationCompleted || op.Status == wire.OperationFailed
		}, seen)
}

// operation finds an operation among those of its database.
func (c *Client) operation(ctx context.Context, op wire.Operation) (wire.Operation, error) {
	recovery, err := c.GetRecovery(ctx, op.DatabaseID)
	if err != nil {
		return op, err
	}
	for _, known := range recovery.Operations {
		if known.ID == op.ID {
			return known, nil
		}
	}
	return op, &Error{Status: http.StatusNotFound, Code: wire.CodeNotFound, Message: "nothing is known of the operation " + op.ID}
}
