package connstring

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

func TestMode(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]SSLMode{
		"127.0.0.1": SSLPrefer, "127.8.9.1": SSLPrefer, "::1": SSLPrefer, "::ffff:127.0.0.1": SSLPrefer,
		"localhost": SSLPrefer, "LocalHost.": SSLPrefer, "db.localhost": SSLPrefer,
		"10.0.0.1": SSLRequire, "::": SSLRequire, "0.0.0.0": SSLRequire, "fd00::2": SSLRequire,
		"db.example.com": SSLRequire, "localhost.example.com": SSLRequire, "notlocalhost": SSLRequire, "127.0.0.1.example.com": SSLRequire,
	} {
		if got := Mode(host); got != want {
			t.Errorf("%s: %s, not %s", host, got, want)
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	target := Target{
		Host: "db.example.com", Port: 7432, Database: "shop", User: "app", CAFile: "/etc/my app/ca.crt",
		Password: model.NewSecret(`a"b'c;d+e&f%20/ä`),
	}
	const login = "app:a%22b%27c%3Bd%2Be%26f%2520%2F%C3%A4@"
	const verify = "sslmode=verify-full&sslrootcert=/etc/my%20app/ca.crt"
	d := target.Drivers()
	loopback := target
	loopback.Host = "::1"
	for _, test := range []struct{ what, got, want string }{
		{"URL", target.URL(), "postgresql://" + login + "db.example.com:7432/shop?sslmode=require"},
		{"URL on loopback", loopback.URL(), "postgresql://" + login + "[::1]:7432/shop"},
		{"libpq", d.Libpq, "postgresql://" + login + "db.example.com:7432/shop?" + verify},
		{"node-postgres over IPv6", loopback.Drivers().NodePostgres, "postgresql://" + login + "[::1]:7432/shop?" + verify + "&host=%3A%3A1"},
		{"JDBC", d.JDBC, "jdbc:postgresql://db.example.com:7432/shop?user=app&password=a%22b%27c%3Bd%2Be%26f%2520/%C3%A4&" + verify},
		{"SQLAlchemy", d.SQLAlchemy, "postgresql+psycopg://" + login + "db.example.com:7432/shop?" + verify},
		{"Npgsql", d.Npgsql, `Host=db.example.com;Port=7432;Database=shop;Username=app;Password="a""b'c;d+e&f%20/ä";SSL Mode=VerifyFull;Root Certificate="/etc/my app/ca.crt"`},
		{"Npgsql over IPv6", loopback.Drivers().Npgsql, `Host=::1;Port=7432;Database=shop;Username=app;Password="a""b'c;d+e&f%20/ä";SSL Mode=VerifyFull;Root Certificate="/etc/my app/ca.crt"`},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, not %s", test.what, test.got, test.want)
		}
	}
}

// FuzzRoundTrip parses the results with pgx, net/url, and a parser of .NET's connection
// strings that follows the documented grammar.
func FuzzRoundTrip(f *testing.F) {
	f.Add("db.example.com", "app", `p%40@:/?#&+'"\ ;={}$!ä€ |x`)
	f.Add("::1", "App user", `""`)
	f.Add("fe80::1", "ü", ` `)
	f.Fuzz(func(t *testing.T, host, user, password string) {
		_, err := netip.ParseAddr(host)
		if err != nil && strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || host == "" ||
			strings.Contains(host, "%") || user == "" || password == "" || strings.ContainsRune(user+password, 0) {
			t.Skip("the appliance has no such host, user or password")
		}
		target := Target{Host: host, Port: 7432, Database: "shop", User: user, Password: model.NewSecret(password)}
		drivers := target.Drivers()
		config, err := pgconn.ParseConfig(target.URL())
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != host || config.Port != 7432 || config.User != user || config.Password != password || config.Database != "shop" {
			t.Errorf("pgx reads %q, %q, %q, not %q, %q, %q", config.Host, config.User, config.Password, host, user, password)
		}
		jdbc, err := url.Parse(strings.TrimPrefix(drivers.JDBC, "jdbc:"))
		if err != nil {
			t.Fatal(err)
		}
		if q := jdbc.Query(); q.Get("user") != user || q.Get("password") != password || !sameHost(jdbc.Hostname(), host) {
			t.Errorf("JDBC reads %q, %q", jdbc.Hostname(), q)
		}
		pairs := parseNet(t, drivers.Npgsql)
		if pairs["Host"] != host || pairs["Port"] != strconv.Itoa(target.Port) || pairs["Username"] != user || pairs["Password"] != password {
			t.Errorf(".NET reads %q of %q", pairs, drivers.Npgsql)
		}
	})
}

func sameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return a == b || errX == nil && errY == nil && x == y
}

// parseNet reads name=value pairs, separated by semicolons. A value is quoted with " or ',
// doubled inside, or ends at the next semicolon and loses leading and trailing blanks.
func parseNet(t *testing.T, text string) map[string]string {
	t.Helper()
	pairs := map[string]string{}
	for text != "" {
		name, rest, ok := strings.Cut(text, "=")
		if !ok || rest == "" {
			t.Fatalf("%q has no value", text)
		}
		if quote := rest[:1]; quote != `"` && quote != "'" {
			var value string
			value, text, _ = strings.Cut(rest, ";")
			pairs[name] = strings.TrimSpace(value)
			continue
		}
		value := ""
		quote := rest[:1]
		for rest = rest[1:]; ; rest = rest[1:] {
			part, after, ok := strings.Cut(rest, quote)
			if !ok {
				t.Fatalf("%q: the quote does not end", rest)
			}
			value, rest = value+part, after
			if !strings.HasPrefix(rest, quote) {
				break
			}
			value += quote
		}
		pairs[name] = value
		if text, ok = strings.CutPrefix(rest, ";"); !ok && rest != "" {
			t.Fatalf("%q follows a quoted value", rest)
		}
	}
	return pairs
}

// An unknown password is omitted, so that a client asks for it.
func TestWithoutPassword(t *testing.T) {
	target := Target{Host: "db.example.com", Port: 7432, Database: "shop", User: "app", CAFile: "ca.crt"}
	d := target.Drivers()
	for _, text := range []string{target.URL(), d.Libpq, d.NodePostgres, d.JDBC, d.Npgsql, d.Pgx, d.Asyncpg, d.SQLAlchemy} {
		if strings.Contains(strings.ToLower(text), "password") || strings.Contains(text, "app:") {
			t.Errorf("it names a password: %s", text)
		}
	}
}
