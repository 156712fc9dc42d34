package wire

import "time"

// Connection is all a client needs to connect to a database, including the
// password.
type Connection struct {
	Host          string      `json:"host"`
	Port          int         `json:"port"`
	Database      string      `json:"database"`
	User          string      `json:"user"`
	Password      *string     `json:"password" format:"password" doc:"Null when it was changed by SQL."`
	SSLMode       SSLMode     `json:"ssl_mode" doc:"How a client that does not verify the server connects: prefer where the host is loopback, else require. Drivers disagree on what these mean; see drivers."`
	ConnectionURL string      `json:"connection_url" doc:"Works unchanged where the host is loopback. Elsewhere it requires TLS; a driver that then verifies the server needs ca_certificate, see drivers."`
	PsqlCommand   string      `json:"psql_command"`
	Environment   Environment `json:"environment" doc:"The variables that psql and libpq read."`
	Drivers       Drivers     `json:"drivers" doc:"A connection string for each driver. Each verifies the server with ca_certificate, which the client keeps in the file ca_file."`
	CACertificate string      `json:"ca_certificate" doc:"PEM, for drivers and for sslmode=verify-full."`
	ReadOnly      bool        `json:"read_only" doc:"Whether the user can only read: true for keys without database:update."`
	// PasswordChangedOutside is true together with a Message that says what to
	// do.
	PasswordChangedOutside bool    `json:"password_changed_outside" doc:"Whether the password was changed by SQL: then no field holds one."`
	Message                *string `json:"message" doc:"What to do about a password that was changed outside, else null."`
}

// Environment is a connection as environment variables.
type Environment struct {
	DatabaseURL string `json:"DATABASE_URL"`
	Host        string `json:"PGHOST"`
	Port        string `json:"PGPORT"`
	Database    string `json:"PGDATABASE"`
	User        string `json:"PGUSER"`
	Password    string `json:"PGPASSWORD,omitempty" required:"false" format:"password" doc:"Left out when it was changed by SQL."`
	SSLMode     string `json:"PGSSLMODE,omitempty" required:"false" doc:"Left out where the host is loopback: there each driver's own default works."`
}

// Drivers holds the connection string in each driver's own form.
type Drivers struct {
	Libpq        string `json:"libpq" format:"password" doc:"libpq and what is built on it: psql, psycopg, Ruby's pg, Rails, Django with a URL; also Go's lib/pq."`
	NodePostgres string `json:"node_postgres" format:"password" doc:"node-postgres (pg) and what is built on it: Knex, Drizzle, Sequelize, Prisma with @prisma/adapter-pg."`
	JDBC         string `json:"jdbc" format:"password" doc:"PostgreSQL's JDBC driver."`
	Npgsql       string `json:"npgsql" format:"password" doc:"Npgsql, for .NET."`
	Pgx          string `json:"pgx" format:"password" doc:"pgx, for Go."`
	Asyncpg      string `json:"asyncpg" format:"password" doc:"asyncpg, for Python."`
	SQLAlchemy   string `json:"sqlalchemy" format:"password" doc:"SQLAlchemy with psycopg."`
}

// RotatedConnection is the connection with its new password.
type RotatedConnection struct {
	Connection
	RotatedAt          time.Time `json:"rotated_at"`
	SessionsTerminated int       `json:"sessions_terminated"`
}

// Credentials are the login of a database that was just created.
type Credentials struct {
	Username      string `json:"username"`
	Password      string `json:"password" format:"password"`
	ConnectionURL string `json:"connection_url"`
}

// CreatedDatabase is a new database and its credentials.
type CreatedDatabase struct {
	Database
	Credentials Credentials `json:"credentials" doc:"Shown unasked this once; GET …/connection has them later."`
}
