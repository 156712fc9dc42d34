package postgres

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/durable"
)

// identMap is the name of the map in pg_ident.conf.
const identMap = "holdfast"

// HBA says who may connect. Over the private socket, this process's user may log
// in as [Superuser], as the dumper and, in Database, as Local. Over TCP, Users
// may log in, only to Database and only from the networks in Allow.
type HBA struct {
	Local    string         // a role the appliance may use in Database; "" = none
	Database string         // the tenant's database
	Beside   bool           // Users may also log in to the databases beside it
	Users    []string       // its login roles
	Others   bool           // so may roles that they make
	Creators []string       // those of Users who may also log in to the databases beside it and to postgres, but to no template
	Allow    []netip.Prefix // the only networks that may connect; empty = none
}

// Equal reports whether both admit the same connections.
func (h HBA) Equal(o HBA) bool {
	return h.Local == o.Local && h.Database == o.Database && h.Beside == o.Beside && h.Others == o.Others && slices.Equal(h.Users, o.Users) && slices.Equal(h.Creators, o.Creators) && slices.Equal(h.Allow, o.Allow)
}

// WriteHBA writes h to pg_hba.conf and pg_ident.conf in the data directory dir;
// they take effect at the next start or reload. PostgreSQL applies the first rule
// that matches and refuses a connection that matches none. WriteHBA reports
// whether a file changed.
//
// Loopback clients may connect with or without TLS, all others with TLS only. The
// superuser is refused on TCP whatever Allow says.
func WriteHBA(dir string, h HBA) (changed bool, err error) {
	rules, err := h.rules()
	if err != nil {
		return false, fmt.Errorf("write %s: %w", hbaFile, err)
	}
	ident, err := h.ident()
	if err != nil {
		return false, fmt.Errorf("write %s: %w", identFile, err)
	}
	first, err := durable.WriteFileIfChanged(filepath.Join(dir, hbaFile), []byte(rules), 0o600)
	if err != nil {
		return false, err
	}
	second, err := durable.WriteFileIfChanged(filepath.Join(dir, identFile), []byte(ident), 0o600)
	return first || second, err
}

func (h HBA) ident() (string, error) {
	// Not user.Current, which caches the user as which the process first ran.
	me, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return "", fmt.Errorf("look up own user: %w", err)
	}
	quoted, err := quoteHBA(me.Username)
	if err != nil {
		return "", err
	}
	lines := fmt.Sprintf("# Written by holdfast.\n%[1]s %[2]s %[3]s\n%[1]s %[2]s %[4]s\n", identMap, quoted, Superuser, dumper)
	// The map by itself lets nobody in. With the default owner in it, it stays the same when a warm server is handed out.
	local, err := quoteHBA(cmp.Or(h.Local, preparedOwner))
	return lines + fmt.Sprintf("%s %s %s\n", identMap, quoted, local), err
}

func (h HBA) rules() (string, error) {
	var b strings.Builder
	b.WriteString("# Written by holdfast.\n")
	local, err := h.local()
	if err != nil {
		return "", err
	}
	b.WriteString(local)
	for _, rule := range []string{
		"local all all reject",
		"host all " + Superuser + "," + dumper + " all reject",
		"host replication all all reject",
	} {
		b.WriteString(rule + "\n")
	}
	names, err := h.names()
	if err != nil {
		return "", err
	}
	creators, err := quoteAll(h.Creators)
	if err != nil {
		return "", err
	}
	if creators != "" {
		b.WriteString("host " + strings.Join(Templates(), ",") + " all all reject\n")
	}
	for _, prefix := range h.Allow {
		lines, err := networkRules(prefix)
		if err != nil {
			return "", err
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "%s %s %s scram-sha-256\n", line.kind, names, line.network)
			if creators != "" {
				fmt.Fprintf(&b, "%s all %s %s scram-sha-256\n", line.kind, creators, line.network)
			}
		}
	}
	b.WriteString("host all all all reject\n")
	return b.String(), nil
}

// local returns the rules that let the appliance in over the socket.
func (h HBA) local() (string, error) {
	const own = "local all " + Superuser + "," + dumper + " peer map=" + identMap + "\n"
	if h.Local == "" {
		return own, nil
	}
	database, err := quoteHBA(h.Database)
	if err != nil {
		return "", fmt.Errorf("database: %w", err)
	}
	role, err := quoteHBA(h.Local)
	return own + "local " + database + " " + role + " peer map=" + identMap + "\n", err
}

// names returns the database and user columns of the tenant's rules.
func (h HBA) names() (string, error) {
	if len(h.Allow) == 0 {
		return "", nil // no clients: a scratch instance has no tenant
	}
	if len(h.Users) == 0 {
		return "", fmt.Errorf("networks are allowed but no users")
	}
	database, err := quoteHBA(h.Database)
	if err != nil {
		return "", fmt.Errorf("database: %w", err)
	}
	if h.Beside {
		database = "all"
	}
	if h.Others {
		return database + " all", nil
	}
	users, err := quoteAll(h.Users)
	return database + " " + users, err
}

// quoteAll returns a list of users.
func quoteAll(names []string) (string, error) {
	users := make([]string, len(names))
	for i, name := range names {
		var err error
		if users[i], err = quoteHBA(name); err != nil {
			return "", fmt.Errorf("user: %w", err)
		}
	}
	return strings.Join(users, ","), nil
}

// Templates returns the names of PostgreSQL's template databases, which no tenant may log in to.
func Templates() []string { return []string{"template0", "template1"} }

type networkRule struct {
	kind    string // host: with or without TLS; hostssl: with TLS only
	network netip.Prefix
}

// networkRules returns the rules that admit the addresses of prefix: loopback
// addresses with or without TLS, all others with TLS.
func networkRules(prefix netip.Prefix) ([]networkRule, error) {
	if !prefix.IsValid() {
		return nil, fmt.Errorf("network %v is not valid", prefix)
	}
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	prefix = prefix.Masked()
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	if prefix.Addr().Is6() {
		loopback = netip.MustParsePrefix("::1/128")
	}
	switch {
	case !prefix.Overlaps(loopback):
		return []networkRule{{"hostssl", prefix}}, nil
	case prefix.Bits() >= loopback.Bits():
		return []networkRule{{"host", prefix}}, nil
	}
	return []networkRule{{"host", loopback}, {"hostssl", prefix}}, nil
}
