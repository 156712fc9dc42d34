package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"holdfast/server/api/wire"
)

// OperationOptions select operations; an empty field selects all. Operations have
// no project and no name.
type OperationOptions struct {
	ListOptions
	Filter
	DatabaseID string
	Type       wire.OperationType
	Status     wire.OperationStatus
}

// ListOperations returns a page of the operations, ended ones included.
func (c *Client) ListOperations(ctx context.Context, o OperationOptions) (Page[wire.Operation], error) {
	query := setTexts(o.add(o.query()), map[string]string{"database_id": o.DatabaseID, "type": string(o.Type), "status": string(o.Status)})
	return list[wire.Operation](ctx, c, "/operations", query)
}

// Operations iterates over the operations that o selects.
func (c *Client) Operations(ctx context.Context, o OperationOptions) iter.Seq2[wire.Operation, error] {
	return all(ctx, o, func(o *OperationOptions) *ListOptions { return &o.ListOptions }, c.ListOperations)
}

// longestWait is less than the minute that the API allows, after which the client
// gives up on a response that does not start.
const longestWait = 50 * time.Second

// GetOperation returns an operation. If wait is not 0, it returns when the operation
// has ended, or after wait, which counts in whole seconds, up to 50.
func (c *Client) GetOperation(ctx context.Context, id string, wait time.Duration) (wire.Operation, error) {
	query := url.Values{}
	if seconds := int(min(wait, longestWait).Seconds()); seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds)+"s")
	}
	op, _, err := call[wire.Operation](ctx, c, "GET", path("operations", id), query, nil)
	return op, err
}

// CancelOperation cancels an operation and returns it, usually when it has ended.
func (c *Client) CancelOperation(ctx context.Context, id string) (wire.Operation, error) {
	return one[wire.Operation](ctx, c, "POST", path("operations", id, "cancel"), nil)
}

// AwaitOperation waits until an operation ends and returns its record. It follows the
// operation's events and passes each received record to seen. CodeNotFound means that the operation is unknown because
// its database was deleted.
func (c *Client) AwaitOperation(ctx context.Context, op wire.Operation, seen func(wire.Operation)) (wire.Operation, error) {
	for now, err := range c.GetOperationEvents(ctx, op.ID) {
		if err != nil {
			return op, err
		}
		if op = now; seen != nil {
			seen(op)
		}
	}
	return op, ctx.Err()
}
