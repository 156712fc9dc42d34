package postgres_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
)

// Clients connect over TCP with the tenant's password, or none, and name another
// user or another database in the startup message.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	d, neighbour := postgrestest.Instance(t), postgrestest.Instance(t)
	t.Run("over TCP", func(t *testing.T) { overTCP(t, d, neighbour) })
	t.Run("from within", func(t *testing.T) { fromWithin(t, d, neighbour) })
}

// loginAttack is a login, and the SQLSTATEs that may refuse it, "" if none may.
type loginAttack struct {
	name     string
	at       *postgrestest.Database
	user     string
	password model.Secret
	database string
	params   map[string]string
	states   string
}

func (a loginAttack) run(t *testing.T) {
	config, err := pgx.ParseConfig(a.at.URL("app", model.NewSecret("x")))
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Password, config.Database = a.user, a.password.Reveal(), a.database
	for name, value := range a.params {
		config.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		conn.Close(t.Context())
	}
	if got := sqlState(err); a.states == "" && err != nil || a.states != "" && (got == "" || !strings.Contains(a.states, got)) {
		t.Errorf("%v, want SQLSTATE %q", err, a.states)
	}
}

func overTCP(t *testing.T, d, neighbour *postgrestest.Database) {
	own, reads, none := d.Tenant.OwnerPassword, d.Tenant.ReadOnlyPassword, model.NewSecret("x")
	for _, a := range []loginAttack{
		{"owner (the control)", d, "app", own, "app", nil, ""},
		{"neighbour as owner", neighbour, "app", own, "app", nil, "28P01"},
		{"neighbour as reader", neighbour, "app_readonly", reads, "app", nil, "28P01"},
		{"reader's password for the owner", d, "app", reads, "app", nil, "28P01"},
		{"database postgres", d, "app", own, "postgres", nil, "28000"},
		{"database postgres as reader", d, "app_readonly", reads, "postgres", nil, "28000"},
		{"database template1", d, "app", own, "template1", nil, "28000"},
		{"database template0", d, "app", own, "template0", nil, "28000"},
		{"the superuser", d, "holdfast", own, "app", nil, "28000"},
		{"the superuser, quoted", d, `"holdfast"`, own, "app", nil, "28000"},
		{"the superuser in postgres", d, "holdfast", none, "postgres", nil, "28000"},
		{"postgres", d, "postgres", none, "app", nil, "28000"},
		{"all", d, "all", none, "all", nil, "28000"},
		{"list of users", d, "app,holdfast", own, "app", nil, "28000"},
		{"group", d, "+app", own, "app", nil, "28000"},
		{"predefined role", d, "pg_read_all_data", none, "app", nil, "28000"},
		{"database's owner", d, "pg_database_owner", none, "app", nil, "28000"},
		{"same user", d, "app", own, "sameuser", nil, "28000"},
		{"database replication", d, "app", own, "replication", nil, "28000"},
		{"truncated name", d, "app", own, "app" + strings.Repeat("x", 70), nil, "28000"},
		{"replication", d, "app", own, "app", map[string]string{"replication": "true"}, "53300"},
		{"replication as reader", d, "app_readonly", reads, "app", map[string]string{"replication": "on"}, "53300"},
		{"replication as the superuser", d, "holdfast", none, "", map[string]string{"replication": "true"}, "53300"},
		{"logical replication", d, "app", own, "app", map[string]string{"replication": "database"}, "53300"},
		{"library by setting", d, "app", own, "app", map[string]string{"session_preload_libraries": "x"}, "42501"},
		{"library by option", d, "app", own, "app", map[string]string{"options": "-c session_preload_libraries=x"}, "42501"},
		{"library by path", d, "app", own, "app", map[string]string{"local_preload_libraries": "/tmp/attack.so"}, "42501 58P01"},
		{"library outside of plugins", d, "app", own, "app", map[string]string{"local_preload_libraries": "../../tmp/attack"}, "42501 58P01"},
		{"session authorization", d, "app", own, "app", map[string]string{"options": "-c session_authorization=holdfast"}, "42501 22023 42704"},
		{"role", d, "app", own, "app", map[string]string{"role": "holdfast"}, "42501 22023"},
		{"system tables", d, "app", own, "app", map[string]string{"options": "-O"}, "42501"},
		{"system indexes", d, "app", own, "app", map[string]string{"allow_system_table_mods": "on"}, "42501"},
		{"logging off", d, "app", own, "app", map[string]string{"options": "-c log_connections=off"}, "42501 55P02"},
	} {
		t.Run(a.name, a.run)
	}
}

// Only the operating system's user can reach the private socket and files, and it
// connects as the superuser. A tenant's code in the database runs as that user, so
// it must not get anything that could connect from there.
func TestSocketAndFiles(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	dir := d.SocketDir(t)
	for path, mode := range map[string]os.FileMode{dir: 0o700, postgres.SocketPath(dir, d.Spec.Config.Port): 0o700, d.Spec.Dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for user, password := range map[string]model.Secret{"app": d.Tenant.OwnerPassword, "app_readonly": d.Tenant.ReadOnlyPassword} {
		for _, database := range []string{"app", "postgres"} {
			config, err := pgx.ParseConfig(d.URL("app", password))
			if err != nil {
				t.Fatal(err)
			}
			config.Host, config.User, config.Database, config.TLSConfig, config.Fallbacks = dir, user, database, nil, nil
			if _, err := pgx.ConnectConfig(t.Context(), config); sqlState(err) != "28000" {
				t.Errorf("%s in %s: %v", user, database, err)
			}
		}
	}
	err := filepath.WalkDir(d.Spec.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			return nil // PostgreSQL's temporary files come and go
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
}

// If an operator installs extensions that connect from within (the owner cannot),
// PostgreSQL still requires a password that the server actually asked for: peer
// authentication, by which the server's own user is the superuser, asks for none.
func fromWithin(t *testing.T, d, neighbour *postgrestest.Database) {
	allowed(t, d.Superuser(t, "app"),
		"create extension dblink schema public", "create extension postgres_fdw schema public", "grant usage on foreign data wrapper postgres_fdw to app")
	owner := d.Owner(t)
	for _, at := range []*postgrestest.Database{d, neighbour} {
		socket := "host=" + at.SocketDir(t) + " port=" + strconv.Itoa(at.Spec.Config.Port) + " user=holdfast dbname=postgres"
		refused(t, owner, "2F003", []string{
			"select dblink_connect('" + socket + "')",
			"select dblink_connect('" + socket + " password=x')",
			"select * from dblink('" + socket + " password=x', 'alter role app superuser') as t(x text)",
			"select dblink_exec('" + socket + " password=x passfile=/etc/passwd', 'alter role app superuser')",
		})
		refused(t, owner, "42501", []string{"select dblink_connect_u('" + socket + "')"})
		name := "s" + strconv.Itoa(at.Spec.Config.Port)
		allowed(t, owner,
			"create server "+name+" foreign data wrapper postgres_fdw options (host '"+at.SocketDir(t)+"', port '"+strconv.Itoa(at.Spec.Config.Port)+"', dbname 'postgres')",
			"create user mapping for app server "+name+" options (user 'holdfast', password 'x')",
			"create foreign table f"+name+" (rolname name, rolpassword text) server "+name+" options (schema_name 'pg_catalog', table_name 'pg_authid')")
		refused(t, owner, "2F003", []string{"select * from f" + name, "import foreign schema public from server " + name + " into public"})
		refused(t, owner, "42501", []string{"alter user mapping for app server " + name + " options (add password_required 'false')"})
		// Over TCP the superuser cannot log in, and the tenant does not know the neighbour's password.
		refused(t, owner, "08001", []string{
			"select dblink_connect('host=127.0.0.1 port=" + strconv.Itoa(at.Spec.Config.Port) + " user=holdfast dbname=postgres password=x')",
		})
	}
	refused(t, owner, "08001", []string{
		"select dblink_connect('host=127.0.0.1 port=" + strconv.Itoa(neighbour.Spec.Config.Port) + " user=app dbname=app password=" + d.Tenant.OwnerPassword.Reveal() + "')",
	})
	// The control: connecting to itself, with the password it knows anyway.
	allowed(t, owner, "select dblink_connect('host=127.0.0.1 port="+strconv.Itoa(d.Spec.Config.Port)+" user=app dbname=app password="+d.Tenant.OwnerPassword.Reveal()+"')")
}
