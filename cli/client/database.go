package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"holdfast/server/api/wire"
)

// ConnectionOptions describe the client that asks how to connect.
type ConnectionOptions struct {
	// CAFile is where the client keeps Connection.CACertificate; "" means the
	// API's default.
	CAFile string
}

// DatabaseOptions select databases; an empty field selects all.
type DatabaseOptions struct {
	ListOptions
	Filter
	Status wire.DatabaseStatus
}

// ListDatabases returns a page of the databases.
func (c *Client) ListDatabases(ctx context.Context, o DatabaseOptions) (Page[wire.Database], error) {
	query := setTexts(o.add(o.query()), map[string]wire.DatabaseStatus{"status": o.Status})
	return list[wire.Database](ctx, c, "/databases", query)
}

// Databases iterates over the databases that o selects.
func (c *Client) Databases(ctx context.Context, o DatabaseOptions) iter.Seq2[wire.Database, error] {
	return all(ctx, o, func(o *DatabaseOptions) *ListOptions { return &o.ListOptions }, c.ListDatabases)
}

// LogOptions select lines of a database's server log; an empty field selects all.
type LogOptions struct {
	Limit        int // how many of the newest lines, 1 to 1000; 0 means the API's default
	Level        wire.LogLevel
	Search       string
	Since, Until time.Time
	After        string        // cursor of an earlier answer: only what follows
	Wait         time.Duration // how long to wait for a line, at most a minute; 0 does not wait
}

// GetDatabaseLog returns the newest lines of a database's server log.
func (c *Client) GetDatabaseLog(ctx context.Context, id string, o LogOptions) (wire.DatabaseLog, error) {
	query := setTexts(ListOptions{Limit: o.Limit}.query(), map[string]string{"level": string(o.Level), "search": o.Search, "after": o.After})
	if seconds := int(min(o.Wait, longestWait).Seconds()); seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds)+"s")
	}
	setTimes(query, map[string]time.Time{"since": o.Since, "until": o.Until})
	log, _, err := call[wire.DatabaseLog](ctx, c, "GET", path("databases", id, "log"), query, nil)
	return log, err
}

// GetDatabaseMetrics returns a database's activity over time, of a day if within is "".
func (c *Client) GetDatabaseMetrics(ctx context.Context, id string, within wire.MetricsRange) (wire.Metrics, error) {
	query := setTexts(url.Values{}, map[string]wire.MetricsRange{"range": within})
	metrics, _, err := call[wire.Metrics](ctx, c, "GET", path("databases", id, "metrics"), query, nil)
	return metrics, err
}

// CreateDatabase creates a database and returns when it accepts connections.
func (c *Client) CreateDatabase(ctx context.Context, in wire.CreateDatabase) (wire.CreatedDatabase, error) {
	return one[wire.CreatedDatabase](ctx, c, "POST", "/databases", in)
}

// GetDatabase returns a database's record.
func (c *Client) GetDatabase(ctx context.Context, id string) (wire.Database, error) {
	return one[wire.Database](ctx, c, "GET", path("databases", id), nil)
}

// UpdateDatabase changes a database.
func (c *Client) UpdateDatabase(ctx context.Context, id string, in wire.UpdateDatabase) (wire.Database, error) {
	return one[wire.Database](ctx, c, "PATCH", path("databases", id), in)
}

// DeleteDatabase deletes a database and its backups.
func (c *Client) DeleteDatabase(ctx context.Context, id string) (wire.DeletedResource, error) {
	return one[wire.DeletedResource](ctx, c, "DELETE", path("databases", id), nil)
}

// RestartDatabase restarts a database and returns when it accepts connections
// again.
func (c *Client) RestartDatabase(ctx context.Context, id string) (wire.Database, error) {
	return one[wire.Database](ctx, c, "POST", path("databases", id, "restart"), nil)
}

// RotateDatabasePassword gives the database a new password.
func (c *Client) RotateDatabasePassword(ctx context.Context, id string, in wire.RotatePassword) (wire.RotatedConnection, error) {
	return one[wire.RotatedConnection](ctx, c, "POST", path("databases", id, "rotate-password"), in)
}

// GetDatabaseConnection returns how to connect, with the privileges that the
// key allows.
func (c *Client) GetDatabaseConnection(ctx context.Context, id string, o ConnectionOptions) (wire.Connection, error) {
	query := url.Values{}
	if o.CAFile != "" {
		query.Set("ca_file", o.CAFile)
	}
	connection, _, err := call[wire.Connection](ctx, c, "GET", path("databases", id, "connection"), query, nil)
	return connection, err
}
