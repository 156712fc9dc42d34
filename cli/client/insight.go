package client

import (
	"context"
	"net/url"

	"holdfast/server/api/wire"
)

// ListStatements returns the statements of a database that took most, of all time if order is "".
func (c *Client) ListStatements(ctx context.Context, id string, order wire.StatementOrder) (wire.StatementList, error) {
	query := setTexts(url.Values{}, map[string]wire.StatementOrder{"order": order})
	list, _, err := call[wire.StatementList](ctx, c, "GET", path("databases", id, "statements"), query, nil)
	return list, err
}

// ResetStatements forgets what was counted of a database's statements.
func (c *Client) ResetStatements(ctx context.Context, id string) (wire.ResetStatements, error) {
	return one[wire.ResetStatements](ctx, c, "POST", path("databases", id, "statements", "reset"), nil)
}

// ExplainStatement returns the plan of a statement, which is not executed.
func (c *Client) ExplainStatement(ctx context.Context, id string, in wire.ExplainStatement) (wire.StatementPlan, error) {
	return one[wire.StatementPlan](ctx, c, "POST", path("databases", id, "statements", "explain"), in)
}

// ListLocks returns the sessions that wait for locks, and those they wait for.
func (c *Client) ListLocks(ctx context.Context, id string) (wire.LockList, error) {
	return one[wire.LockList](ctx, c, "GET", path("databases", id, "locks"), nil)
}

// ListRelations returns the largest tables and indexes of the database dbname of PostgreSQL; "" means the main one.
func (c *Client) ListRelations(ctx context.Context, id, dbname string) (wire.RelationList, error) {
	list, _, err := call[wire.RelationList](ctx, c, "GET", path("databases", id, "relations"), named(dbname), nil)
	return list, err
}
