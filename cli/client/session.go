package client

import (
	"context"

	"holdfast/server/api/wire"
)

// ListDatabaseSessions returns the open sessions of a database's users.
func (c *Client) ListDatabaseSessions(ctx context.Context, id string) (wire.DatabaseSessions, error) {
	return one[wire.DatabaseSessions](ctx, c, "GET", path("databases", id, "sessions"), nil)
}

// CancelDatabaseSession cancels the statement that a session executes.
func (c *Client) CancelDatabaseSession(ctx context.Context, id, session string) (wire.SignalledSession, error) {
	return one[wire.SignalledSession](ctx, c, "POST", path("databases", id, "sessions", session, "cancel"), nil)
}

// TerminateDatabaseSession ends a session.
func (c *Client) TerminateDatabaseSession(ctx context.Context, id, session string) (wire.SignalledSession, error) {
	return one[wire.SignalledSession](ctx, c, "POST", path("databases", id, "sessions", session, "terminate"), nil)
}
