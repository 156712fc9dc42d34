package client

import (
	"context"

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
