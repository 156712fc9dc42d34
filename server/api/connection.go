package api

import (
	"strconv"

	"holdfast/engine/connstring"
	"holdfast/engine/databases"
	"holdfast/server/api/wire"
)

// NewConnection returns the wire form of a connection, which is one of the
// two places where a password leaves the appliance. Its client keeps the
// authority's certificate in caFile.
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

// newEnvironment has no PGSSLMODE for loopback, as the URL has no sslmode:
// node-postgres would take each of its values but `disable` and `allow` to mean
// verify-full.
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

// NewCredentials returns the wire form of a new database's connection, the
// other place where a password leaves the appliance.
func NewCredentials(c databases.Connection) wire.Credentials {
	return wire.Credentials{Username: c.User, Password: c.Password.Reveal(), ConnectionURL: c.URL()}
}
