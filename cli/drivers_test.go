package cli_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/engine/certificates"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// driverProgram connects with the drivers of one language.
type driverProgram struct {
	name    string
	part    string // required files, below the repository's root
	command func(root string) *exec.Cmd
	// universal are the drivers that accept connection_url unchanged.
	universal []string
	// verifying names the field of drivers for each driver.
	verifying map[string]string
}

func driverPrograms() []driverProgram {
	const installed = "cli/testdata/drivers/installed/"
	return []driverProgram{
		{
			name: "node", part: "server/api/testdata/node_modules/pg",
			command: func(root string) *exec.Cmd {
				cmd := exec.Command("node", filepath.Join(root, "cli/testdata/drivers/connect.cjs"))
				cmd.Env = []string{"NODE_PATH=" + filepath.Join(root, "server/api/testdata/node_modules")}
				return cmd
			},
			universal: []string{"pg", "knex"},
			verifying: map[string]string{"pg": "node_postgres", "knex": "node_postgres"},
		},
		{
			name: "python", part: installed + "python/bin/python",
			command: func(root string) *exec.Cmd {
				return exec.Command(filepath.Join(root, installed+"python/bin/python"), filepath.Join(root, "cli/testdata/drivers/connect.py"))
			},
			universal: []string{"asyncpg", "psycopg"},
			verifying: map[string]string{"asyncpg": "asyncpg", "psycopg": "libpq", "sqlalchemy": "sqlalchemy"},
		},
		{
			name: "java", part: installed + "java",
			command: func(root string) *exec.Cmd {
				return exec.Command("java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(root, installed+"java/*"), filepath.Join(root, "cli/testdata/drivers/Connect.java"))
			},
			verifying: map[string]string{"jdbc": "jdbc"},
		},
		{
			name: "psql",
			command: func(root string) *exec.Cmd {
				return exec.Command("sh", filepath.Join(root, "cli/testdata/drivers/connect.sh"))
			},
			universal: []string{"psql"},
			verifying: map[string]string{"psql": "libpq"},
		},
		{
			name:      "go",
			command:   func(string) *exec.Cmd { return exec.Command(os.Args[0]) },
			universal: []string{"pgx"},
			verifying: map[string]string{"pgx": "pgx"},
		},
	}
}

// requirePart skips the test if a program's files are missing. In CI,
// HOLDFAST_DRIVERS names the programs whose files .ci/run has installed.
func (p driverProgram) requirePart(t *testing.T, root string) {
	t.Helper()
	if p.part == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(root, p.part)); err != nil {
		if slices.Contains(strings.Fields(os.Getenv("HOLDFAST_DRIVERS")), p.name) {
			t.Fatal(err)
		}
		t.Skipf("%s is not there: .ci/run gets it", p.part)
	}
}

// attempt is a driver, its connection string, and the expected result.
type attempt struct{ what, library, text, want string }

// try makes each attempt with the given working directory and variables.
func (p driverProgram) try(t *testing.T, root, dir string, environment []string, attempts []attempt) {
	t.Helper()
	if len(attempts) == 0 {
		return
	}
	cmd := p.command(root)
	var lines strings.Builder
	for _, a := range attempts {
		fmt.Fprintf(&lines, "%s\t%s\n", a.library, a.text)
	}
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(lines.String())
	cmd.Env = slices.Concat(os.Environ(), []string{"LC_ALL=C.UTF-8", linesVariable + "=1"}, cmd.Env, environment)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", p.name, err, out)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(attempts) {
		t.Fatalf("%s: %d answers to %d attempts: %s", p.name, len(answers), len(attempts), out)
	}
	for i, a := range attempts {
		if !strings.HasPrefix(answers[i], a.want) {
			t.Errorf("%s, %s: %s, not %s", a.what, a.library, answers[i], a.want)
		}
	}
}

// driverPassword contains characters that are special to some driver's parser.
const driverPassword = `p%40@:/?#&+'"\ ;={}$!ä€ |x`

// TestDrivers connects with common drivers and the API's connection strings: on
// loopback over IPv4 and IPv6, and to a network address, where TLS is required.
func TestDrivers(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	own := ownAddress(t)
	hosts := []string{"127.0.0.1", "::1", own}
	at := func(host string) { m.start("--postgres-listen", strings.Join(hosts, ","), "--public-host", host) }
	at(hosts[0])
	var db database
	m.must("POST", "/databases", map[string]any{"project": m.project(), "name": "shop", "password": driverPassword}, &db)
	m.must("PUT", "/databases/"+db.ID+"/allowlist", map[string]any{"entries": []string{"127.0.0.1", "::1", own}}, nil)
	for i, host := range hosts {
		if i > 0 {
			m.stop()
			at(host)
			m.awaitAvailable(db.ID)
		}
		t.Run(host, func(t *testing.T) { m.testDrivers(t, root, db.ID) })
	}
}

func (m *machine) testDrivers(t *testing.T, root, database string) {
	named := filepath.Join(t.TempDir(), "authorities of 100% ä+&", "it's.crt")
	var c, elsewhere wire.Connection
	m.must("GET", "/databases/"+database+"/connection", nil, &c)
	m.must("GET", "/databases/"+database+"/connection?ca_file="+url.QueryEscape(named), nil, &elsewhere)
	trusting, deceived := t.TempDir(), t.TempDir()
	other, err := certificates.LoadOrCreateCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string]string{
		named: c.CACertificate, filepath.Join(trusting, "holdfast-ca.crt"): c.CACertificate, filepath.Join(deceived, "holdfast-ca.crt"): other.PEM(),
	})
	for _, p := range driverPrograms() {
		t.Run(p.name, func(t *testing.T) {
			p.requirePart(t, root)
			p.try(t, root, trusting, nil, slices.Concat(p.unchanged(c), p.verified("with the authority", c, "tls"), p.verified("with a file that is named", elsewhere, "tls")))
			if c.Host != "::1" {
				p.try(t, root, deceived, nil, p.verified("with another authority", c, "refused"))
				p.try(t, root, trusting, variablesOf(c.Environment), p.unchanged(c))
			}
		})
	}
}

// unchanged returns attempts with connection_url. node-postgres treats every
// sslmode as verify-full, and needs none on loopback.
func (p driverProgram) unchanged(c wire.Connection) (attempts []attempt) {
	for _, library := range p.universal {
		want := "tls"
		switch {
		case library == "knex" && c.Host == "::1":
			continue // its parser accepts an IPv6 address only in node_postgres
		case p.name == "node" && c.SSLMode == "prefer":
			want = "clear"
		case p.name == "node":
			want = "refused: unable to verify"
		}
		attempts = append(attempts, attempt{"connection_url", library, c.ConnectionURL, want})
	}
	return attempts
}

// verified returns attempts with the strings that verify the server.
func (p driverProgram) verified(what string, c wire.Connection, want string) (attempts []attempt) {
	strings := map[string]string{
		"libpq": c.Drivers.Libpq, "node_postgres": c.Drivers.NodePostgres, "jdbc": c.Drivers.JDBC,
		"pgx": c.Drivers.Pgx, "asyncpg": c.Drivers.Asyncpg, "sqlalchemy": c.Drivers.SQLAlchemy,
	}
	for library, driver := range p.verifying {
		attempts = append(attempts, attempt{what, library, strings[driver], want})
	}
	return attempts
}

// variablesOf returns a program's environment after `db env`.
func variablesOf(e wire.Environment) []string {
	variables := []string{
		"DATABASE_URL=" + e.DatabaseURL, "PGHOST=" + e.Host, "PGPORT=" + e.Port, "PGDATABASE=" + e.Database,
		"PGUSER=" + e.User, "PGPASSWORD=" + e.Password,
	}
	if e.SSLMode != "" {
		variables = append(variables, "PGSSLMODE="+e.SSLMode)
	}
	return variables
}

func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ownAddress returns an address of this machine that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but loopback")
	return ""
}

// linesVariable makes the test binary connect with pgx to each line of standard
// input, like the programs in testdata/drivers.
const linesVariable = "HOLDFAST_TEST_CLIENT_LINES"

func connectByLines() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		_, text, _ := strings.Cut(lines.Text(), "\t")
		connectAndTell(text)
	}
}
