package importer

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/internal/address"
)

func TestParseSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u:p@h/d":                           "u p h 5432 d prefer",
		"postgresql://u@db.example.com:6543/d":         "u  db.example.com 6543 d prefer",
		"postgres://u:p%40%2F%3A%3F%23%25%20'%22ö@h/d": `u p@/:?#% '"ö h 5432 d prefer`,
		`postgres://u:ö |"\<>^{}%60@h/d`:               "u ö |\"\\<>^{}` h 5432 d prefer",
		"postgres://u:a@b@h/d":                         "u a@b h 5432 d prefer",
		"postgres://u:p@[2001:db8::1]:1/d":             "u p 2001:db8::1 1 d prefer",
		"postgres://u.tenant:p@10.0.0.1/a%20b":         "u.tenant p 10.0.0.1 5432 a b prefer",
		"postgres://u:p@h/d?sslmode=verify-full":       "u p h 5432 d verify-full",
		"postgres://u:p@ep-x.neon.tech/d?sslmode=require&channel_binding=require&options=endpoint%3Dep-x": "u p ep-x.neon.tech 5432 d require",
		"postgres://u:p@h/d?application_name=x&connect_timeout=3":                                         "u p h 5432 d prefer",
	} {
		s, err := ParseSource(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := strings.Join([]string{s.User, s.Password.Reveal(), s.Host, s.address()[strings.LastIndex(s.address(), ":")+1:], s.Database, s.sslMode}, " ")
		if got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

// TestParseSourceRefuses also checks that no error repeats a part of the URL.
func TestParseSourceRefuses(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for text, says := range map[string]string{
		"": "must begin", "h/d": "must begin", "http://u:s3cr3t@h/d": "must begin", "postgres:u:s3cr3t@h/d": "must begin",
		"mysql://u:s3cr3t@h/d": "only a PostgreSQL server", "mysql://u:s3cr3t@tcp(h:3306)/d": "only a PostgreSQL server",
		"mysql://u:x#s3cr3t@h/d": "only a PostgreSQL server", "mongodb+srv://u:s3cr3t@h": "only a PostgreSQL server",
		"jdbc:postgresql://h/d?password=s3cr3t": "must begin", "postgresql+asyncpg://u:s3cr3t@h/d": "must begin", "u:s3cr3t@h://d": "must begin",
		"s3cr3t": "must begin", "%zz s3cr3t": "must begin",
		"host=h password=s3cr3t": "must begin",
		"postgres://u:s3cr3t@h":  "name the database", "postgres://u:s3cr3t@h/": "name the database", "postgres://h/d": "name the user",
		"postgres://:s3cr3t@h/d": "name the user", "postgres://u:s3cr3t@/d": "Unix sockets", "postgres://u:s3cr3t@:5432/d": "Unix sockets",
		"postgres://u:s3cr3t@%2Fvar%2Frun/d": "", "postgres://u:s3cr3t@h,g/d": "more than one host", "postgres://u:s3cr3t@h:1,g:2/d": "",
		"postgres://u:s3cr3t@h:0/d": "port", "postgres://u:s3cr3t@h:65536/d": "port", "postgres://u:s3cr3t@h:x/d": "well-formed",
		"postgres://u:s3cr3t%zz@h/d": "well-formed", "postgres://u:s3cr3t/x@h/d": "", "postgres://u:x?s3cr3t@h/d": "", "postgres://u:x#s3cr3t@h/d": "",
		"postgres://u:s3cr3t@h/d#f": "well-formed", "postgres://u:s3cr3t%00@h/d": "zero byte", "postgres://u:s3cr3t@h\n/d": "well-formed",
		"postgres://u:s3cr3t@h e/d": "", "postgres://u:s3cr3t@-h/d": "host", "postgres://u:s3cr3t@h|id/d": "",
		"postgres://u:s3cr3t@169.254.169.254/latest": "link-local", "postgres://u:s3cr3t@[fe80::1]/d": "link-local",
		"postgres://u:s3cr3t@[fe80::1%25eth0]/d": "link-local", "postgres://u:s3cr3t@[::ffff:169.254.169.254]/d": "link-local",
		"postgres://u:s3cr3t@0.0.0.0/d": "unspecified", "postgres://u:s3cr3t@[::]/d": "unspecified", "postgres://u:s3cr3t@224.0.0.1/d": "",
		"postgres://u:s3cr3t@h/d?sslmode=on": "sslmode must be", "postgres://u:s3cr3t@h/d?sslkey=/etc/x": "sslkey", "postgres://u:s3cr3t@h/d?sslcert=x": "sslcert",
		"postgres://u:s3cr3t@h/d?sslrootcert=system": "sslrootcert", "postgres://u:s3cr3t@h/d?passfile=x": "passfile", "postgres://u:s3cr3t@h/d?service=x": "service",
		"postgres://u:s3cr3t@h/d?servicefile=x": "servicefile", "postgres://u:s3cr3t@h/d?sslcrl=x": "sslcrl", "postgres://u:s3cr3t@h/d?sslkeylogfile=x": "sslkeylogfile",
		"postgres://u:s3cr3t@h/d?host=/tmp": "parameter host", "postgres://u:s3cr3t@h/d?hostaddr=127.0.0.1": "hostaddr", "postgres://u:s3cr3t@h/d?port=1": "parameter port",
		"postgres://u@h/d?password=s3cr3t": "parameter password", "postgres://u:s3cr3t@h/d?user=x": "parameter user", "postgres://u:s3cr3t@h/d?dbname=x": "dbname",
		"postgres://u:s3cr3t@h/d?pgbouncer=true": "pgbouncer", "postgres://u:s3cr3t@h/d?role=postgres": "role", "postgres://u:x@h/d?a/s3cr3t": "",
		"postgres://u:s3cr3t@h/d?%zz": "parameters", "postgres://" + strings.Repeat("u", 300) + ":s3cr3t@h/d": "255",
	} {
		_, err := ParseSource(text)
		if model.CodeOf(err) != model.CodeValidation || !strings.HasPrefix(err.Error(), "source_url: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error repeats the password: %v", text, err)
		}
	}
}

// FuzzParseSource checks that an accepted source has exactly one host, over TCP, and that errors do not repeat refused
// input.
func FuzzParseSource(f *testing.F) {
	f.Add("postgres://u:p@h/d?sslmode=require")
	f.Add("postgres://u:p@[::1]:5432/d")
	f.Add("postgres://u:p@h,g/d?host=/tmp")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSource(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(s.Host, "/,@ \x00") || s.Host == "" || s.Port < 1 || s.Port > 65535 || s.User == "" || s.Database == "" {
			t.Errorf("%q is accepted as %+v", text, s.Describe())
		}
		config, err := s.config()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if config.Host != s.Host || int(config.Port) != s.Port || config.Password != s.Password.Reveal() || config.User != s.User || config.Database != s.Database {
			t.Errorf("%q is %+v, and the configuration %s:%d", text, s.Describe(), config.Host, config.Port)
		}
		for _, other := range config.Fallbacks {
			if other.Host != s.Host || int(other.Port) != s.Port {
				t.Errorf("%q may go to %s:%d", text, other.Host, other.Port)
			}
		}
	})
}

// TestDialChecksWhatIsDialled: the name is harmless, but the address it resolves to is not.
func TestDialChecksWhatIsDialled(t *testing.T) {
	t.Parallel()
	for _, to := range []string{
		"169.254.169.254:80", "0.0.0.0:5432", "[::]:5432", "[::ffff:169.254.169.254]:80", "[fd20:ce::254]:80",
		"[fd00:42::42]:80", "[64:ff9b:1::a9fe:a9fe]:80", "192.0.0.192:80", "[fe80::1%lo]:80", "[::7f00:1]:5432",
	} {
		if conn, err := (Source{}).dial(t.Context(), "tcp", to); err == nil || !strings.Contains(err.Error(), address.ErrRefused.Error()) {
			t.Errorf("%s: %v %v", to, conn, err)
		}
	}
	if _, err := (Source{}).dial(t.Context(), "unix", "/tmp/x"); err == nil || !strings.Contains(err.Error(), address.ErrRefused.Error()) {
		t.Errorf("a socket: %v", err)
	}
}

// TestDialOwnPorts: this machine's ports are recognized under any of its names.
func TestDialOwnPorts(t *testing.T) {
	t.Parallel()
	s := Source{RefusePort: func(port int) (string, error) {
		if port == 1 {
			return "is refused", nil
		}
		return "", nil
	}}
	var refused *ownPortError
	for _, host := range append(ownAddresses(t), "localhost", "127.0.0.1", "127.8.9.10", "::ffff:127.0.0.1") {
		if conn, err := s.dial(t.Context(), "tcp", net.JoinHostPort(host, "1")); !errors.As(err, &refused) {
			t.Errorf("%s: %v %v", host, conn, err)
		}
		if conn, err := s.dial(t.Context(), "tcp", net.JoinHostPort(host, "2")); errors.As(err, &refused) {
			t.Errorf("%s, another port: %v %v", host, conn, err)
		}
	}
	if err := s.checkOwn(netip.MustParseAddrPort("192.0.2.1:1")); err != nil {
		t.Errorf("another machine: %v", err)
	}
}

// TestDialPortThatIsRefusedMeanwhile: a server that began to listen on the port after the check, and before the connection,
// gets no byte.
func TestDialPortThatIsRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	checks := 0
	s := Source{RefusePort: func(int) (string, error) {
		if checks++; checks > 1 {
			return "is refused", nil
		}
		return "", nil
	}}
	var refused *ownPortError
	if conn, err := s.dial(t.Context(), "tcp", l.Addr().String()); !errors.As(err, &refused) {
		t.Fatalf("%v %v", conn, err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if n, err := io.Copy(io.Discard, accepted); n > 0 || err != nil {
		t.Errorf("it got %d bytes, %v", n, err)
	}
}

// ownAddresses returns the addresses of the machine's interfaces that a source can have.
func ownAddresses(t *testing.T) (hosts []string) {
	networks, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range networks {
		if prefix := netip.MustParsePrefix(network.String()); address.Check(prefix.Addr()) == nil {
			hosts = append(hosts, prefix.Addr().String())
		}
	}
	return hosts
}
