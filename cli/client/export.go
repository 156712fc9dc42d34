package client

import (
	"cmp"
	"context"

	"holdfast/server/api/wire"
)

// newest returns the state of the newest export.
func newest(x wire.Export) wire.NewerExport {
	if x.Newer != nil {
		return *x.Newer
	}
	return wire.NewerExport{ID: x.ID, Status: x.Status, Error: x.Error}
}

// GetExport returns the newest ready export of the database dbname of PostgreSQL, "" for
// the main one; without one, the state of the newest export.
func (c *Client) GetExport(ctx context.Context, database, dbname string) (wire.Export, error) {
	x, _, err := call[wire.Export](ctx, c, "GET", path("databases", database, "export"), named(dbname), nil)
	return x, err
}

// CreateExport requests an export now.
func (c *Client) CreateExport(ctx context.Context, database string, in wire.CreateExport) (wire.Export, error) {
	return one[wire.Export](ctx, c, "POST", path("databases", database, "export"), in)
}

// AwaitExport waits until the newest export of the database dbname, "" for the main one, is
// ready or has failed, with the attempts in between. It does not wait for those that are
// requested meanwhile, by anybody or by backups that complete. It follows the events of the organization, which needs the scope
// database:read, and passes the record to seen, which may be nil, whenever one is about
// the database.
func (c *Client) AwaitExport(ctx context.Context, database, dbname string, seen func(wire.Export)) (x wire.Export, err error) {
	wanted := ""
	err = c.followEvents(ctx, EventOptions{}, func(m message) (more bool, err error) {
		if !m.first {
			if about, err := m.isAbout(database); !about || err != nil {
				return err == nil, err
			}
		}
		x, err = patiently(ctx, func(ctx context.Context) (wire.Export, error) { return c.GetExport(ctx, database, dbname) })
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
