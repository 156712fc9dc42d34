package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// ImportOptions select imports; an empty field selects all.
type ImportOptions struct {
	ListOptions
	Filter
	DatabaseID string
	Status     wire.ImportStatus
}

// ListImports returns a page of the imports.
func (c *Client) ListImports(ctx context.Context, o ImportOptions) (Page[wire.Import], error) {
	query := setTexts(o.add(o.query()), map[string]string{"database_id": o.DatabaseID, "status": string(o.Status)})
	return list[wire.Import](ctx, c, "/imports", query)
}

// Imports iterates over the imports that o selects.
func (c *Client) Imports(ctx context.Context, o ImportOptions) iter.Seq2[wire.Import, error] {
	return all(ctx, o, func(o *ImportOptions) *ListOptions { return &o.ListOptions }, c.ListImports)
}

// CreateImport starts an import.
func (c *Client) CreateImport(ctx context.Context, in wire.CreateImport) (wire.ImportDetail, error) {
	return one[wire.ImportDetail](ctx, c, "POST", "/imports", in)
}

// GetImport returns an import with its log.
func (c *Client) GetImport(ctx context.Context, id string) (wire.ImportDetail, error) {
	return one[wire.ImportDetail](ctx, c, "GET", path("imports", id), nil)
}

// CutOverImport ends the following of an import: nobody may write to the source any more. It returns when the new
// database accepts clients, with the measured pause, or why the new database follows on.
func (c *Client) CutOverImport(ctx context.Context, id string) (wire.ImportDetail, error) {
	return one[wire.ImportDetail](ctx, c, "POST", path("imports", id, "cutover"), nil)
}

// AwaitImport waits until an import ends, or its database follows the source, and returns its record. It follows the
// operation, and passes each state to seen, which may be nil.
func (c *Client) AwaitImport(ctx context.Context, id string, seen func(wire.Operation)) (wire.ImportDetail, error) {
	i, err := patiently(ctx, func(ctx context.Context) (wire.ImportDetail, error) { return c.GetImport(ctx, id) })
	if err != nil || i.Mode == wire.ImportFollow {
		return c.awaitFollowing(ctx, i, err, seen)
	}
	first := true
	return awaitRecord(ctx, c,
		func(ctx context.Context) (wire.ImportDetail, error) {
			if first {
				first = false
				return i, nil
			}
			return c.GetImport(ctx, id)
		},
		func(i wire.ImportDetail) bool { return i.Status.Final() },
		func(i wire.ImportDetail) OperationOptions {
			return OperationOptions{DatabaseID: i.DatabaseID, Type: wire.OperationImport}
		},
		func(wire.Operation) bool { return true }, seen)
}

// awaitFollowing waits until the database follows: the operation goes on then.
func (c *Client) awaitFollowing(ctx context.Context, i wire.ImportDetail, err error, seen func(wire.Operation)) (wire.ImportDetail, error) {
	for err == nil && !i.Status.Final() && i.Status != wire.ImportFollowing {
		if seen != nil {
			seen(wire.Operation{Type: wire.OperationImport, Status: wire.OperationRunning, DatabaseID: i.DatabaseID, Phase: &i.Phase, ProgressPercent: i.ProgressPercent})
		}
		if err = sleep(ctx, lastPoll); err == nil {
			i, err = patiently(ctx, func(ctx context.Context) (wire.ImportDetail, error) { return c.GetImport(ctx, i.ID) })
		}
	}
	return i, err
}
