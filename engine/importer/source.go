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
)

// Source is the database an import comes from.
type Source struct {
	Host     string // a name or an IP address
	Port     int
	Database string
	User     string
	Password model.Secret
	// Foreign reports whether a port of this machine is not to be imported from;
	// nil when every one is.
	Foreign func(port int) (bool, error)

	refused        *atomic.Pointer[model.Error] // why a session was ended from here
	sslMode        string
	channelBinding string
	options        string // command-line options for the session, as some hosts need to find a database
}

// SourceField is what the input that ParseSource reads is called in errors.
const SourceField = "source_url"

const defaultPort = 5432

// ParseSource reads a connection URL. What names a local file, a socket, a
// service or several hosts is refused, and so is every parameter that is not
// known to be harmless. No error shows any part of the URL but the name of a
// parameter: the password may be anywhere in what is not well-formed.
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

// isPostgres reports whether a scheme is PostgreSQL's.
func isPostgres(scheme string) bool {
	return strings.EqualFold(scheme, "postgresql") || strings.EqualFold(scheme, "postgres")
}

// escapeStray escapes what passwords often have and URLs may not, where it can
// mean nothing else.
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

// longestName is more than any server takes for the name of a role or a
// database (63 bytes), with room for what poolers put behind it.
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
	if address, ok := literalAddress(s.Host); ok {
		if err := checkAddress(address); err != nil {
			return model.Invalid(SourceField, "%v", err)
		}
		return nil
	}
	if !hostName.MatchString(s.Host) {
		return model.Invalid(SourceField, "has a host that is neither a host name nor an IP address")
	}
	return nil
}

// modes are what sslmode may be, all of which work without files of this
// machine: verify-ca and verify-full trust the system's authorities.
var modes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// setParameters takes what stands behind the question mark.
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
		case "application_name", "connect_timeout", "target_session_attrs", "gssencmode", "sslsni": // nothing of it matters here
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

// Describe returns what may be shown of the source.
func (s Source) Describe() model.ImportSource {
	return model.ImportSource{Host: s.Host, Port: s.Port, Database: s.Database, User: s.User}
}

func (s Source) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
