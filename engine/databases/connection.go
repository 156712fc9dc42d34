package databases

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/connstring"
	"holdfast/engine/model"
)

// DefaultCAFile is the file in which a client is expected to keep the authority's
// certificate unless it names another.
const DefaultCAFile = "holdfast-ca.crt"

// Connection holds everything a client needs to connect.
type Connection struct {
	connstring.Target
	// CACertificate is the PEM text of the appliance's certificate authority.
	CACertificate string
	ReadOnly      bool
	// PasswordChanged says that the user's password was changed by SQL: the
	// appliance does not know it, and Password is zero.
	PasswordChanged bool
}

// PasswordChangedMessage tells a client what to do about Connection.PasswordChanged.
const PasswordChangedMessage = "the password of this user was changed by SQL, so the appliance does not know it; " +
	"connect with the password that was set, or set a new one with rotate-password"

// passwordCheckTimeout bounds how long a request for connection details waits for
// the database to say which passwords are in force.
const passwordCheckTimeout = 2 * time.Second

// Connection returns how to connect: as the owner if the call may change the
// database, otherwise as the read-only role.
func (s *Service) Connection(call *model.Call, id string) (Connection, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return Connection{}, err
	}
	if status, _ := s.LiveStatus(db); status == model.DatabaseAvailable && !s.IsAsleep(db.ID) {
		ctx, cancel := context.WithTimeout(s.core.Lifetime, passwordCheckTimeout)
		defer cancel()
		if err := s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) (err error) {
			db, err = s.notePasswords(ctx, conn, db)
			return err
		}); err != nil { // use the result of the last check
			s.core.Log.Warn("check the passwords of a database", "database", db.ID, "error", err)
		}
	}
	return s.ConnectionOf(db, call.Holds(model.ScopeDatabaseUpdate))
}

// ConnectionOf returns how to connect to the database of a record, as the owner or
// as the read-only role.
func (s *Service) ConnectionOf(db model.Database, asOwner bool) (Connection, error) {
	tenant, err := s.tenant(db)
	if err != nil {
		return Connection{}, err
	}
	c := Connection{CACertificate: s.CA.PEM(), Target: connstring.Target{
		Host: s.core.Config.PublicHost, Port: db.Port, Database: db.Name, User: tenant.Owner, Password: tenant.OwnerPassword,
	}}
	if !asOwner {
		c.User, c.Password, c.ReadOnly = tenant.ReadOnly, tenant.ReadOnlyPassword, true
	} else if db.OwnPassword != nil {
		c.Password, c.PasswordChanged = model.Secret{}, true
	}
	return c, nil
}

// SSLMode returns the sslmode of a client that does not verify the server.
func (c Connection) SSLMode() connstring.SSLMode { return connstring.Mode(c.Host) }

// Drivers returns the connection in the form of each driver, which verifies the
// server with the certificate in caFile. Each one includes the password.
func (c Connection) Drivers(caFile string) connstring.Drivers {
	c.CAFile = caFile
	return c.Target.Drivers()
}

// PsqlCommand returns a shell command that opens the database; psql takes the
// password from the URL.
func (c Connection) PsqlCommand() string { return "psql '" + c.URL() + "'" }
