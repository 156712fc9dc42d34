package connstring

import (
	"net/netip"
	"strconv"
	"strings"
)

// Drivers holds a connection in the form of each driver. Each string verifies the server with the authority's
// certificate in the target's CAFile, and contains the password.
type Drivers struct {
	// Libpq is for libpq and what is built on it (psql, psycopg, Ruby's pg, Rails, Django with a URL), and for Go's
	// lib/pq.
	Libpq string
	// NodePostgres is for node-postgres (pg) and what is built on it: Knex, Drizzle, Sequelize, Prisma with
	// @prisma/adapter-pg.
	NodePostgres string
	// JDBC is for PostgreSQL's JDBC driver.
	JDBC string
	// Npgsql is for .NET.
	Npgsql string
	// Pgx is for Go's pgx.
	Pgx string
	// Asyncpg is for Python's asyncpg.
	Asyncpg string
	// SQLAlchemy is for SQLAlchemy with psycopg.
	SQLAlchemy string
}

// verifyFull returns the parameters with which libpq, and drivers that follow it, verify the server.
func (t Target) verifyFull() []parameter {
	return []parameter{{"sslmode", "verify-full"}, {"sslrootcert", t.CAFile}}
}

// Drivers returns the connection in the form of each driver.
func (t Target) Drivers() Drivers {
	libpq := t.url("postgresql", t.verifyFull()...)
	return Drivers{
		Libpq: libpq, Pgx: libpq, Asyncpg: libpq,
		NodePostgres: t.nodePostgres(),
		JDBC:         t.jdbc(),
		Npgsql:       t.npgsql(),
		SQLAlchemy:   t.url("postgresql+psycopg", t.verifyFull()...),
	}
}

// nodePostgres repeats an IPv6 address as a parameter: Knex's parser keeps the brackets of the address before the
// port, and then looks up a host of that name.
func (t Target) nodePostgres() string {
	parameters := t.verifyFull()
	if strings.Contains(t.Host, ":") {
		parameters = append(parameters, parameter{"host", t.Host})
	}
	return t.url("postgresql", parameters...)
}

// jdbc puts the login into the parameters: the JDBC driver reads none before the host.
func (t Target) jdbc() string {
	login := []parameter{{"user", t.User}}
	if !t.Password.IsZero() {
		login = append(login, parameter{"password", t.Password.Reveal()})
	}
	t.Host = javaAddress(t.Host)
	return "jdbc:postgresql://" + t.address() + "/" + percent(t.Database, "") + query(append(login, t.verifyFull()...))
}

// javaAddress returns an IPv6 address as Java formats it, with all of its zeros. The JDBC driver compares the
// host's text with Java's text of the address in the certificate. Other hosts are returned unchanged.
func javaAddress(host string) string {
	address, err := netip.ParseAddr(host)
	if err != nil || !address.Unmap().Is6() {
		return host
	}
	bytes := address.As16()
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = strconv.FormatUint(uint64(bytes[2*i])<<8|uint64(bytes[2*i+1]), 16)
	}
	return strings.Join(groups, ":")
}

// npgsql follows the rules of .NET's DbConnectionStringBuilder.
func (t Target) npgsql() string {
	pairs := []parameter{
		{"Host", t.Host}, {"Port", strconv.Itoa(t.Port)}, {"Database", t.Database}, {"Username", t.User},
	}
	if !t.Password.IsZero() {
		pairs = append(pairs, parameter{"Password", t.Password.Reveal()})
	}
	pairs = append(pairs, parameter{"SSL Mode", "VerifyFull"}, parameter{"Root Certificate", t.CAFile})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(p.name + "=" + quoteNet(p.value))
	}
	return b.String()
}

// quoteNet quotes a value unless all of its characters are safe unquoted anywhere.
func quoteNet(value string) string {
	if strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:") == "" && value != "" {
		return value
	}
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}
