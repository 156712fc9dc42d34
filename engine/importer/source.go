package importer

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"holdfast/engine/model"
	"holdfast/internal/address"
)

// Source is the database that an import copies.
type Source struct {
	Host     string // a name or an IP address
	Port     int
	Database string
	User     string
	Password model.Secret
	// RefusePort returns why imports from a port of this machine are refused, "" if they are not; nil allows every
	// port. The reason follows the address in a sentence.
	RefusePort func(port int) (reason string, err error)

	refused        *atomic.Pointer[model.Error] // why the importer ended a session
	sslMode        string
	channelBinding string
	options        string // command-line options of the session, which some hosts use to select a database
}

// SourceField is the name in errors of the input that ParseSource reads.
const SourceField = "source_url"

const defaultPort = 5432

// ParseSource parses a connection URL. It refuses local files, sockets, services, several hosts, and every parameter
// that is not known to be harmless. No error shows any part of the URL except the name of a parameter: a malformed URL
// may have the password anywhere.
func ParseSource(text string) (Source, error) {
	if scheme, _, ok := strings.Cut(text, "://"); !ok || !isPostgres(scheme) {
		return Source{}, model.Invalid(SourceField, "must begin with postgresql:// or postgres://: only a PostgreSQL server can be imported from")
	}
	u, err := url.Parse(escapeStray(text))
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(text, "\x00\r\n") {
		return Source{}, model.Invalid(SourceField, "is not a well-formed URL; write it as postgresql://user:password@host:port/database, "+
			"with special characters in the parts as %%XX")
	}
	s := Source{User: u.User.Username(), Database: strings.TrimPrefix(u.Path, "/")}
	password, _ := u.User.Password()
	s.Password = model.NewSecret(password)
	if s.User == "" {
		return Source{}, model.Invalid(SourceField, "must name the user: postgresql://user:password@host/database")
	}
	if s.Database == "" {
		return Source{}, model.Invalid(SourceField, "must name the database: postgresql://user:password@host/database")
	}
	if strings.ContainsRune(s.User+s.Database+password, 0) || len(s.User) > longestName || len(s.Database) > longestName {
		return Source{}, model.Invalid(SourceField, "has a user or a database of more than %d bytes, or with a zero byte", longestName)
	}
	if err := s.setAddress(u); err != nil {
		return Source{}, err
	}
	return s, s.setParameters(u)
}

// isPostgres reports whether a URL scheme is PostgreSQL's.
func isPostgres(scheme string) bool {
	return strings.EqualFold(scheme, "postgresql") || strings.EqualFold(scheme, "postgres")
}

// escapeStray escapes characters that are common in passwords but not allowed in URLs, where they have no other
// meaning.
func escapeStray(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= 0x80 || strings.IndexByte(" \"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// longestName exceeds every server's limit for the name of a role or a database (63 bytes), and leaves space for a
// pooler's suffix.
const longestName = 255

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?$`)

func (s *Source) setAddress(u *url.URL) error {
	if strings.Contains(u.Host, ",") {
		return model.Invalid(SourceField, "names more than one host; give the one to copy from")
	}
	s.Host, s.Port = u.Hostname(), defaultPort
	if s.Host == "" || strings.ContainsAny(s.Host, "/@") {
		return model.Invalid(SourceField, "must name a host that is reached over TCP; Unix sockets are not")
	}
	if port := u.Port(); port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return model.Invalid(SourceField, "has a port that is not between 1 and 65535")
		}
		s.Port = int(number)
	}
	if literal, ok := literalAddress(s.Host); ok {
		if err := address.Check(literal); err != nil {
			return model.Invalid(SourceField, "%v", err)
		}
		return nil
	}
	if !hostName.MatchString(s.Host) {
		return model.Invalid(SourceField, "has a host that is neither a host name nor an IP address")
	}
	return nil
}

// modes are the supported values of sslmode, all of which work without local files: verify-ca and verify-full use the
// system's certificate authorities.
var modes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// setParameters reads the query parameters.
func (s *Source) setParameters(u *url.URL) error {
	s.sslMode = "prefer"
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return model.Invalid(SourceField, "has parameters that are not well-formed; write special characters as %%XX")
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "sslmode":
			if !slices.Contains(modes, value) {
				return model.Invalid(SourceField, "sslmode must be one of %s", strings.Join(modes, ", "))
			}
			s.sslMode = value
		case "channel_binding":
			if !slices.Contains([]string{"disable", "prefer", "require"}, value) {
				return model.Invalid(SourceField, "channel_binding must be disable, prefer or require")
			}
			s.channelBinding = value
		case "options":
			s.options = value
		case "application_name", "connect_timeout", "target_session_attrs", "gssencmode", "sslsni": // these have no effect here
		default:
			return refuseParameter(name)
		}
	}
	return nil
}

var (
	localFiles = []string{
		"sslkey", "sslcert", "sslrootcert", "sslcrl", "sslcrldir", "sslpassword", "sslcertmode",
		"passfile", "service", "servicefile", "sslkeylogfile", "krbsrvname", "gsslib",
	}
	elsewhere = []string{"host", "hostaddr", "port", "user", "password", "dbname", "database"}
	parameter = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]{0,62}$`)
)

func refuseParameter(name string) error {
	switch {
	case slices.Contains(localFiles, name):
		return model.Invalid(SourceField, "the parameter %s names a file or a service of this machine and is refused; leave it out", name)
	case slices.Contains(elsewhere, name):
		return model.Invalid(SourceField, "the parameter %s is refused; host, port, user, password and database stand before the question mark", name)
	case parameter.MatchString(name):
		return model.Invalid(SourceField, "the parameter %s is not known here; leave it out (sslmode, channel_binding and options are)", name)
	default: // it may be part of a password
		return model.Invalid(SourceField, "has a parameter that is not known here; write special characters in the password as %%XX")
	}
}

// Describe returns the parts of the source that may be shown.
func (s Source) Describe() model.ImportSource {
	return model.ImportSource{Host: s.Host, Port: s.Port, Database: s.Database, User: s.User}
}

func (s Source) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
