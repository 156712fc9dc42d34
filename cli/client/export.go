package client

import (
	"cmp"
	"context"

	"holdfast/server/api/wire"
)

// newest returns the state of the newest backup's export.
func newest(x wire.Export) wire.NewerExport {
	if x.Newer != nil {
		return *x.Newer
	}
	return wire.NewerExport{ID: x.ID, Status: x.Status, Error: x.Error}
}

// GetExport returns the newest ready export of a database; without one, the
// state of the newest export.
func (c *Client) GetExport(ctx context.Context, database string) (wire.Export, error) {
	return one[wire.Export](ctx, c, "GET", path("databases", database, "export"), nil)
}

// CreateExport requests an export of a database now.
func (c *Client) CreateExport(ctx context.Context, database string) (wire.Export, error) {
	return one[wire.Export](ctx, c, "POST", path("databases", database, "export"), nil)
}

// AwaitExport waits until the newest backup's export is ready or has failed, with the
// attempts in between. It does not wait for the exports of backups that complete
// meanwhile. It follows the events of the organization, which needs the scope
// database:read, and passes the record to seen, which may be nil, whenever one is about
// the database.
func (c *Client) AwaitExport(ctx context.Context, database string, seen func(wire.Export)) (x wire.Export, err error) {
	wanted := ""
	err = c.followEvents(ctx, EventOptions{}, func(m message) (more bool, err error) {
		if !m.first {
			if about, err := m.isAbout(database); !about || err != nil {
				return err == nil, err
			}
		}
		x, err = patiently(ctx, func(ctx context.Context) (wire.Export, error) { return c.GetExport(ctx, database) })
		if err != nil {
			return false, err
		}
		if seen != nil {
			seen(x)
		}
		last := newest(x)
		wanted = cmp.Or(wanted, last.ID)
		return (x.ID != wanted || x.Status != wire.ExportReady) && last.Status != wire.ExportReady && last.Status != wire.ExportFailed, nil
	})
	return x, err
}

// isAbout reports whether a message is an event of a database, or of events that are missing.
func (m message) isAbout(database string) (bool, error) {
	if m.data == nil || m.event == "gap" {
		return m.event == "gap", nil
	}
	e, err := m.wireEvent()
	return e.Data.DatabaseID != nil && *e.Data.DatabaseID == database, err
}
