package api

import (
	"strconv"
	"time"

	"holdfast/engine"
)

// Connection is all a client needs to connect to a database. It holds the
// password.
type Connection struct {
	Host          string      `json:"host"`
	Port          int         `json:"port"`
	Database      string      `json:"database"`
	User          string      `json:"user"`
	Password      string      `json:"password" format:"password"`
	SSLMode       string      `json:"ssl_mode"`
	ConnectionURL string      `json:"connection_url"`
	PsqlCommand   string      `json:"psql_command"`
	Environment   Environment `json:"environment" doc:"The variables that psql and libpq read."`
	CACertificate string      `json:"ca_certificate" doc:"PEM, for sslmode=verify-full."`
	ReadOnly      bool        `json:"read_only" doc:"Whether the user can only read: true for keys without database:update."`
}

// Environment is a connection as environment variables.
type Environment struct {
	DatabaseURL string `json:"DATABASE_URL"`
	Host        string `json:"PGHOST"`
	Port        string `json:"PGPORT"`
	Database    string `json:"PGDATABASE"`
	User        string `json:"PGUSER"`
	Password    string `json:"PGPASSWORD" format:"password"`
	SSLMode     string `json:"PGSSLMODE"`
}

// NewConnection returns the wire form of a connection, which is one of the
// two places where a password leaves the appliance.
func NewConnection(c engine.Connection) Connection {
	password := c.Password.Reveal()
	return Connection{
		Host: c.Host, Port: c.Port, Database: c.Database, User: c.User, Password: password, SSLMode: c.SSLMode,
		ConnectionURL: c.URL(), PsqlCommand: c.PsqlCommand(),
		Environment: Environment{
			DatabaseURL: c.URL(), Host: c.Host, Port: strconv.Itoa(c.Port), Database: c.Database,
			User: c.User, Password: password, SSLMode: c.SSLMode,
		},
		CACertificate: c.CACertificate, ReadOnly: c.ReadOnly,
	}
}

// RotatedConnection is the connection with its new password.
type RotatedConnection struct {
	Connection
	RotatedAt          time.Time `json:"rotated_at"`
	SessionsTerminated int       `json:"sessions_terminated"`
}

// Credentials are how to log in to a database that was just created.
type Credentials struct {
	Username      string `json:"username"`
	Password      string `json:"password" format:"password"`
	ConnectionURL string `json:"connection_url"`
}

// NewCredentials returns the wire form of a new database's connection, the
// other place where a password leaves the appliance.
func NewCredentials(c engine.Connection) Credentials {
	return Credentials{Username: c.User, Password: c.Password.Reveal(), ConnectionURL: c.URL()}
}

// CreatedDatabase is a new database and how to log in to it.
type CreatedDatabase struct {
	Database
	Credentials Credentials `json:"credentials" doc:"Shown unasked this once; GET …/connection has them later."`
}
