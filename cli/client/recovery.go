package client

import (
	"context"
	"net/http"

	"holdfast/server/api/wire"
)

// GetRecovery returns a database's recovery status.
func (c *Client) GetRecovery(ctx context.Context, database string) (wire.Recovery, error) {
	return one[wire.Recovery](ctx, c, "GET", path("databases", database, "recovery"), nil)
}

// RequestRestore starts restoring a database to a point in time. It ignores
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

// UndoRestore starts bringing back the data that the last restore replaced.
func (c *Client) UndoRestore(ctx context.Context, database string) (wire.Operation, error) {
	return one[wire.Operation](ctx, c, "POST", path("databases", database, "recovery", "undo"), nil)
}

// AwaitOperation waits until an operation on a database ends and returns its
// record. It passes each polled record to seen. CodeNotFound means that the
// operation is unknown because its database was deleted.
func (c *Client) AwaitOperation(ctx context.Context, op wire.Operation, seen func(wire.Operation)) (wire.Operation, error) {
	return await(ctx,
		func(ctx context.Context) (wire.Operation, error) { return c.operation(ctx, op) },
		func(op wire.Operation) bool {
			return op.Status == wire.OperationCompleted || op.Status == wire.OperationFailed
		}, seen)
}

// operation finds an operation in its database's list.
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
	return op, &Error{Status: http.StatusNotFound, Code: wire.CodeNotFound, Message: "no operation " + op.ID}
}
