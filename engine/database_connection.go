package engine

import (
	"fmt"
	"net/url"
	"strings"

	"holdfast/engine/model"
)

// Connection is all a client needs to connect.
type Connection struct {
	Host     string
	Port     int
	Database string
	User     string
	Password model.Secret
	SSLMode  string
	// CACertificate is the PEM text of the appliance's certificate authority.
	CACertificate string
	ReadOnly      bool
}

// DatabaseConnection returns how to connect: as the owner for who may change
// the database, as the role that can only read for who may not.
func (e *Engine) DatabaseConnection(call *model.Call, id string) (Connection, error) {
	db, err := e.database(call, id)
	if err != nil {
		return Connection{}, err
	}
	return e.connection(db, call.Holds(model.ScopeDatabaseUpdate))
}

func (e *Engine) connection(db model.Database, asOwner bool) (Connection, error) {
	tenant, err := e.tenant(db)
	if err != nil {
		return Connection{}, err
	}
	c := Connection{
		Host: e.cfg.PublicHost, Port: db.Port, Database: db.Name, SSLMode: SSLMode,
		User: tenant.Owner, Password: tenant.OwnerPassword, CACertificate: e.ca.PEM(),
	}
	if !asOwner {
		c.User, c.Password, c.ReadOnly = tenant.ReadOnly, tenant.ReadOnlyPassword, true
	}
	return c, nil
}

// URL returns the connection as a URL, which holds the password.
func (c Connection) URL() string {
	u := url.URL{
		Scheme:   "postgresql",
		User:     url.UserPassword(c.User, c.Password.Reveal()),
		Host:     hostPort(c.Host, c.Port),
		Path:     "/" + c.Database,
		RawQuery: "sslmode=" + c.SSLMode,
	}
	return u.String()
}

// PsqlCommand returns a shell command that opens the database; psql takes the
// password from the URL.
func (c Connection) PsqlCommand() string {
	return "psql '" + strings.ReplaceAll(c.URL(), "'", "%27") + "'"
}

func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}
