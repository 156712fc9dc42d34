package api

import (
	"strconv"

	"holdfast/engine/connstring"
	"holdfast/engine/databases"
	"holdfast/server/api/wire"
)

// NewConnection returns the wire form of a connection, which is one of the places where a password leaves the
// appliance. The client keeps the authority's certificate in caFile.
func NewConnection(c databases.Connection, caFile string) wire.Connection {
	var password, message *string
	if c.PasswordChanged {
		message = new(databases.PasswordChangedMessage)
	} else {
		password = new(c.Password.Reveal())
	}
	return wire.Connection{
		Host: c.Host, Port: c.Port, Database: c.Database, User: c.User, Password: password, SSLMode: wire.SSLMode(c.SSLMode()),
		ConnectionURL: c.URL(), PsqlCommand: c.PsqlCommand(),
		Environment: newEnvironment(c), Drivers: wire.Drivers(c.Drivers(caFile)),
		CACertificate: c.CACertificate, ReadOnly: c.ReadOnly,
		PasswordChangedOutside: c.PasswordChanged, Message: message,
	}
}

// newEnvironment omits PGSSLMODE for loopback, as the URL omits sslmode: node-postgres treats every value except
// `disable` and `allow` as verify-full.
func newEnvironment(c databases.Connection) wire.Environment {
	e := wire.Environment{
		DatabaseURL: c.URL(), Host: c.Host, Port: strconv.Itoa(c.Port), Database: c.Database,
		User: c.User, Password: c.Password.Reveal(),
	}
	if mode := c.SSLMode(); mode != connstring.SSLPrefer {
		e.SSLMode = string(mode)
	}
	return e
}

// NewCredentials returns the wire form of a new database's connection, another place where a password leaves the
// appliance.
func NewCredentials(c databases.Connection) wire.Credentials {
	return wire.Credentials{Username: c.User, Password: c.Password.Reveal(), ConnectionURL: c.URL()}
}
