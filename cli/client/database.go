package client

import (
	"context"
	"iter"
	"net/url"
	"time"
)

// DatabaseAvailable is the status of a database that accepts connections.
const DatabaseAvailable = "available"

// Database is a database's record.
type Database struct {
	ID                string     `json:"id"`
	Project           string     `json:"project"` // id
	Name              string     `json:"name"`
	Status            string     `json:"status"`
	StatusReason      *string    `json:"status_reason"`
	Version           *string    `json:"version"` // of PostgreSQL
	Host              string     `json:"host"`
	Port              int        `json:"port"`
	DatabaseName      string     `json:"database_name"`
	DBUser            string     `json:"db_user"`
	SizeBytes         *int64     `json:"size_bytes"`
	ActiveConnections *int       `json:"active_connections"`
	SSLMode           string     `json:"ssl_mode"`
	CreatedAt         time.Time  `json:"created_at"`
	UpdatedAt         time.Time  `json:"updated_at"`
	LatestBackupAt    *time.Time `json:"latest_backup_at"`
	Operation         *Operation `json:"operation"` // what is being done to it now
}

// CreateDatabase is what a database is made of. Empty fields are left to the
// appliance.
type CreateDatabase struct {
	Project  string `json:"project"` // id
	Name     string `json:"name"`
	DBUser   string `json:"db_user,omitempty"`
	Password string `json:"password,omitempty"`
}

// Credentials are how to log in to a new database.
type Credentials struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	ConnectionURL string `json:"connection_url"`
}

// CreatedDatabase is a new database and how to log in to it.
type CreatedDatabase struct {
	Database
	Credentials Credentials `json:"credentials"`
}

// Recoverable says until when the operator can bring back what was deleted.
type Recoverable struct {
	RecoverableUntil *time.Time `json:"recoverable_until"` // null when it is gone for good
}

// DeletedResource says what became of a deleted database or bucket.
type DeletedResource struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
	Recoverable
}

// Connection is how to connect to a database. It holds the password.
type Connection struct {
	Host          string      `json:"host"`
	Port          int         `json:"port"`
	Database      string      `json:"database"`
	User          string      `json:"user"`
	Password      *string     `json:"password"` // nil when it was changed by SQL
	SSLMode       string      `json:"ssl_mode"`
	ConnectionURL string      `json:"connection_url"`
	PsqlCommand   string      `json:"psql_command"`
	Environment   Environment `json:"environment"`
	Drivers       Drivers     `json:"drivers"`
	CACertificate string      `json:"ca_certificate"` // PEM
	ReadOnly      bool        `json:"read_only"`
	// PasswordChangedOutside says that the password was changed by SQL, and no field
	// holds it; Message says what to do.
	PasswordChangedOutside bool    `json:"password_changed_outside"`
	Message                *string `json:"message"`
}

// Environment is a connection as the variables that libpq reads.
type Environment struct {
	DatabaseURL string `json:"DATABASE_URL"`
	Host        string `json:"PGHOST"`
	Port        string `json:"PGPORT"`
	Database    string `json:"PGDATABASE"`
	User        string `json:"PGUSER"`
	Password    string `json:"PGPASSWORD,omitempty"` // "" when it was changed by SQL
	SSLMode     string `json:"PGSSLMODE,omitempty"`  // "" where the host is loopback
}

// Drivers are a connection in the form of each driver. Each string verifies
// the server with the certificate in ConnectionOptions.CAFile.
type Drivers struct {
	Libpq        string `json:"libpq"`
	NodePostgres string `json:"node_postgres"`
	JDBC         string `json:"jdbc"`
	Npgsql       string `json:"npgsql"`
	Pgx          string `json:"pgx"`
	Asyncpg      string `json:"asyncpg"`
	SQLAlchemy   string `json:"sqlalchemy"`
}

// ConnectionOptions are what a client says of itself when it asks how to
// connect.
type ConnectionOptions struct {
	// CAFile is where the client has Connection.CACertificate; "" leaves it to
	// the API.
	CAFile string
}

// RotatePassword is how a password is rotated.
type RotatePassword struct {
	TerminateSessions bool `json:"terminate_sessions"`
}

// RotatedConnection is the connection with its new password.
type RotatedConnection struct {
	Connection
	RotatedAt          time.Time `json:"rotated_at"`
	SessionsTerminated int       `json:"sessions_terminated"`
}

// ListDatabases returns a page of the databases.
func (c *Client) ListDatabases(ctx context.Context, o ListOptions) (Page[Database], error) {
	return list[Database](ctx, c, "/databases", o.query())
}

// Databases walks all databases.
func (c *Client) Databases(ctx context.Context) iter.Seq2[Database, error] {
	return All(ctx, c.ListDatabases)
}

// CreateDatabase makes a database and returns when it accepts connections.
func (c *Client) CreateDatabase(ctx context.Context, in CreateDatabase) (CreatedDatabase, error) {
	return one[CreatedDatabase](ctx, c, "POST", "/databases", in)
}

// GetDatabase returns a database's record.
func (c *Client) GetDatabase(ctx context.Context, id string) (Database, error) {
	return one[Database](ctx, c, "GET", path("databases", id), nil)
}

// DeleteDatabase deletes a database with its backups.
func (c *Client) DeleteDatabase(ctx context.Context, id string) (DeletedResource, error) {
	return one[DeletedResource](ctx, c, "DELETE", path("databases", id), nil)
}

// RestartDatabase restarts a database and returns when it accepts connections
// again.
func (c *Client) RestartDatabase(ctx context.Context, id string) (Database, error) {
	return one[Database](ctx, c, "POST", path("databases", id, "restart"), nil)
}

// RotateDatabasePassword gives the database a new password.
func (c *Client) RotateDatabasePassword(ctx context.Context, id string, in RotatePassword) (RotatedConnection, error) {
	return one[RotatedConnection](ctx, c, "POST", path("databases", id, "rotate-password"), in)
}

// GetDatabaseConnection returns how to connect, with as much power as the key
// has.
func (c *Client) GetDatabaseConnection(ctx context.Context, id string, o ConnectionOptions) (Connection, error) {
	query := url.Values{}
	if o.CAFile != "" {
		query.Set("ca_file", o.CAFile)
	}
	connection, _, err := call[Connection](ctx, c, "GET", path("databases", id, "connection"), query, nil)
	return connection, err
}
