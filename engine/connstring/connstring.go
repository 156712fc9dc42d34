// Package connstring formats the connection to a database for each driver.
//
// A Target is one login to one database. Target.URL returns a URL that works unchanged in every driver that reads
// PostgreSQL's URLs. Target.Drivers returns one string for each driver, each of which verifies the server: its
// certificate must be signed by the authority in Target.CAFile, for Target.Host. Every string contains the
// password.
//
// Names, passwords and paths are UTF-8 bytes; each string encodes them so that its driver reads back exactly these
// bytes.
package connstring

import (
	"net/netip"
	"strconv"
	"strings"

	"holdfast/engine/model"
)

// Target is one login to one database.
type Target struct {
	Host     string // name or address, without brackets
	Port     int
	Database string
	User     string
	Password model.Secret // omitted if zero
	// CAFile is the path of the authority's PEM certificate on the client. A relative path starts at the client's
	// working directory. Only Drivers uses it.
	CAFile string
}

// SSLMode is a value of libpq's parameter sslmode.
type SSLMode string

// The modes that Mode returns.
const (
	// SSLPrefer uses TLS if the server offers it. It is libpq's default.
	SSLPrefer SSLMode = "prefer"
	// SSLRequire uses TLS and does not verify the server.
	SSLRequire SSLMode = "require"
)

// Mode returns how a client that does not verify the server connects to host: it requires TLS except over loopback.
func Mode(host string) SSLMode {
	if IsLoopback(host) {
		return SSLPrefer
	}
	return SSLRequire
}

// IsLoopback reports whether host can only be the client's own machine.
func IsLoopback(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// URL returns the connection as a URL that every driver accepts unchanged. For a loopback host it has no sslmode:
// drivers disagree on what `prefer` and `require` mean, and the default of each works there.
func (t Target) URL() string {
	if Mode(t.Host) == SSLPrefer {
		return t.url("postgresql")
	}
	return t.url("postgresql", parameter{"sslmode", string(SSLRequire)})
}

// Conninfo returns the connection in libpq's form of keywords and values, which CREATE SUBSCRIPTION takes. It does
// not verify the server.
func (t Target) Conninfo() string {
	words := []string{
		"host=" + quoteConninfo(t.Host), "port=" + strconv.Itoa(t.Port), "dbname=" + quoteConninfo(t.Database),
		"user=" + quoteConninfo(t.User), "sslmode=" + string(Mode(t.Host)),
	}
	if !t.Password.IsZero() {
		words = append(words, "password="+quoteConninfo(t.Password.Reveal()))
	}
	return strings.Join(words, " ")
}

// quoteConninfo quotes a value of libpq's keywords.
func quoteConninfo(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(value) + "'"
}

// parameter is a parameter of a URL's query.
type parameter struct{ name, value string }

// url returns a PostgreSQL URL with the given parameters.
func (t Target) url(scheme string, parameters ...parameter) string {
	login := percent(t.User, "")
	if !t.Password.IsZero() {
		login += ":" + percent(t.Password.Reveal(), "")
	}
	return scheme + "://" + login + "@" + t.address() + "/" + percent(t.Database, "") +
		query(parameters)
}

func query(parameters []parameter) string {
	var b strings.Builder
	separator := byte('?')
	for _, p := range parameters {
		b.WriteByte(separator)
		b.WriteString(p.name + "=" + percent(p.value, "/"))
		separator = '&'
	}
	return b.String()
}

// address returns the host and port in URL form.
func (t Target) address() string {
	host := percent(t.Host, ":")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(t.Port)
}

// percent encodes all bytes of text except those of plain and those without a special meaning in any URL parser.
// (net/url leaves characters such as + and & unescaped where RFC 3986 allows it, and some drivers decode a + as a
// space.)
func percent(text, plain string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~"+plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
