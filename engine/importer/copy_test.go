package importer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

//go:embed testdata/everything.sql
var everything string

// origin is a PostgreSQL server to import from, with a superuser who may log in.
type origin struct {
	*postgrestest.Database
	password model.Secret
}

// newOrigin starts a source and runs the script in its database app.
func newOrigin(t testing.TB, script string) *origin {
	t.Helper()
	return newOriginOf(t, postgrestest.Binaries(t), script)
}

// newOriginOf is newOrigin with PostgreSQL of another version.
func newOriginOf(t testing.TB, bin binaries.Set, script string) *origin {
	t.Helper()
	o := &origin{password: model.NewSecret(`p'a"s s\w%:/@?#ö`)}
	o.Database = postgrestest.InstanceOf(t, bin, func(s *postgres.Spec) {
		s.HBA.Users = append(s.HBA.Users, "boss", "auditor")
		s.Config.Settings = map[string]string{"log_statement": "all", "fsync": "off", "wal_level": "logical", "max_wal_senders": "10"}
	})
	run(t, o.Superuser(t, "app"), "create role boss superuser login password "+quoteLiteral(o.password.Reveal()))
	run(t, o.Superuser(t, "app"), "set search_path = public;"+script)
	return o
}

func (o *origin) source() Source {
	return Source{Host: "127.0.0.1", Port: o.Spec.Config.Port, Database: "app", User: "boss", Password: o.password, sslMode: "require"}
}

// place is a new database to import into.
type place struct{ *postgrestest.Database }

func newPlace(t testing.TB) *place {
	t.Helper()
	return &place{postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.HBA = postgres.HBA{Database: "app", Local: "app"}
		s.Config.Settings = map[string]string{"fsync": "off"}
	})}
}

func (p *place) open(ctx context.Context) (*pgx.Conn, error) {
	return p.Supervisor.ConnectLocal(ctx, p.Spec.ID)
}

// bring imports from the source, and returns the import's record.
func (p *place) bring(t testing.TB, from Source) (model.Import, error) {
	t.Helper()
	account := NewAccount(model.Import{}, time.Now)
	err := p.copyFrom(t, from, account)
	return account.Snapshot(), err
}

func (p *place) copyFrom(t testing.TB, from Source, account *Account) error {
	t.Helper()
	return p.copyWith(t, from, account, func(ctx context.Context, _ uint32) (*pgx.Conn, error) { return p.open(ctx) })
}

// copyWith is copyFrom with another way to open sessions with the target, which receives the process ID of the source's
// session that holds the snapshot.
func (p *place) copyWith(t testing.TB, from Source, account *Account, open func(context.Context, uint32) (*pgx.Conn, error)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	session, err := Open(ctx, from, account)
	if err != nil {
		return err
	}
	defer session.Close()
	target, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer target.Close(ctx)
	if err := session.Check(ctx, target); err != nil {
		return err
	}
	return session.Copy(ctx, p.job(t, func(ctx context.Context) (*pgx.Conn, error) { return open(ctx, session.conn.PgConn().PID()) }))
}

// job is how the copy is made here.
func (p *place) job(t testing.TB, open Target) Job {
	t.Helper()
	return Job{Owner: "app", PgDump: filepath.Join(p.Spec.Bin.Dir, "pg_dump"), SocketDir: t.TempDir(), Target: open}
}

func run(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%.100s: %v", sql, err)
	}
}

// ask returns a query's rows as text.
func ask(t testing.TB, conn *pgx.Conn, sql string) string {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%.200s: %v", sql, err)
	}
	var b strings.Builder
	for _, row := range results[len(results)-1].Rows {
		for i, value := range row {
			if i > 0 {
				b.WriteByte('|')
			}
			b.Write(value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestCopyOfEverything(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, everything), newPlace(t)
	record, err := to.bring(t, from.source())
	if err != nil {
		t.Fatal(err)
	}
	// What owners cannot have here, each with its name and the server's message.
	var flaws []string
	for _, flaw := range record.Errors {
		flaws = append(flaws, flaw.Object+" "+flaw.SQLState)
	}
	if diff := cmp.Diff([]string{
		"EXTENSION dblink ",
		"FOREIGN DATA WRAPPER nowhere ", "SERVER away ", "USER MAPPING auditor SERVER away ", "POLICY shop.notes own ", "FOREIGN TABLE shop.elsewhere 42704",
		"SUBSCRIPTION never ", "SECURITY LABELS labels (2) ",
		"SETTING my.own 42501",
		"foreign tables ", "policies ",
	}, flaws); diff != "" {
		t.Errorf("flaws (-want +got):\n%s", diff)
	}
	there, here := from.Superuser(t, "app"), to.Superuser(t, "app")
	if diff := cmp.Diff(ask(t, there, contents), ask(t, here, contents)); diff != "" {
		t.Errorf("rows (-source +copy):\n%s", diff)
	}
	if diff := cmp.Diff(wanted(describe(t, from.Database)), describe(t, to.Database)); diff != "" {
		t.Errorf("schema (-source +copy):\n%s", diff)
	}
	for _, query := range []string{
		"select sequencename, last_value, start_value, increment_by, cycle from pg_sequences order by 1",
		"select m.oid, md5(lo_get(m.oid)), length(lo_get(m.oid)), obj_description(m.oid, 'pg_largeobject') from pg_largeobject_metadata m order by 1",
		"select relname, relrowsecurity, relforcerowsecurity, relispopulated from pg_class where relrowsecurity or relkind = 'm' order by 1",
		"select polname, polcmd, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) from pg_policy where polname <> 'own' order by 1",
		"select shobj_description(oid, 'pg_database') from pg_database where datname = 'app'",
		"select s from pg_db_role_setting, unnest(setconfig) s where setrole = 0 and s ~* '^(search_path|work_mem|timezone)' order by 1",
	} {
		if diff := cmp.Diff(ask(t, there, query), ask(t, here, query)); diff != "" {
			t.Errorf("%s (-source +copy):\n%s", query, diff)
		}
	}
	const own = "select s from pg_db_role_setting, unnest(setconfig) s where setrole = 'app'::regrole order by 1"
	if got, want := ask(t, here, own), "search_path=shop, public\nwork_mem=7MB\n"; got != want {
		t.Errorf("settings of the owner: %s", got)
	}
	if !slices.ContainsFunc(record.Log, func(l model.ImportLine) bool {
		return strings.Contains(l.Message, `"auditor" of the source is not here: its settings`)
	}) {
		t.Errorf("nothing is said of another's settings: %+v", record.Log)
	}
	checkOwners(t, here)
	checkPrivileges(t, here)
	log, err := os.ReadFile(filepath.Join(to.Spec.Dir, "log", "postgres.log"))
	if err != nil || strings.Contains(string(log), "-secret") || strings.Contains(string(log), from.password.Reveal()) {
		t.Errorf("the log of the copy's server has what is secret in the source, or is not there: %v", err)
	}
	if _, err := os.Lstat("/tmp/holdfast-attack"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a name was taken for a command")
	}
}

// TestCopyThatCannotBeDescribed: the error begins with pg_dump's failure.
func TestCopyThatCannotBeDescribed(t *testing.T) {
	t.Parallel()
	from := newOrigin(t, `create view v as select 1 as n; alter function pg_catalog.pg_get_viewdef(oid) rename to pg_get_viewdef_true;
		create function pg_catalog.pg_get_viewdef(oid) returns text language plpgsql as $$ begin raise 'no view today'; end $$`)
	_, err := newPlace(t).bring(t, from.source())
	if want := "pg_dump cannot describe the source: query failed: ERROR: no view today"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// TestCopyWithoutAttributes: attributes that this server does not know do not cost the table; a source none of whose
// tables can be created is not copied.
func TestCopyWithoutAttributes(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create table t (a text default 'x; y''; z', b text default E'\\'';', "c;" int check ("c;" <> 5)); insert into t values ('1', '2', 3);
		alter table t alter a set statistics 77;
		update pg_attribute set attoptions = '{nobody_knows=1}' where attrelid = 't'::regclass and attname in ('a', 'b')`), newPlace(t)
	record, err := to.bring(t, from.source())
	if err != nil || len(record.Errors) > 0 || record.RowsCopied != 1 || !slices.ContainsFunc(record.Log, func(l model.ImportLine) bool {
		return strings.Contains(l.Message, "2 attributes left out") && strings.Contains(l.Message, "nobody_knows")
	}) {
		t.Errorf("%+v, %v", record, err)
	}
	const query = "select attname, attstattarget, pg_get_expr(adbin, adrelid) from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum where attrelid = 'public.t'::regclass and attnum > 0 order by attnum"
	if diff := cmp.Diff(ask(t, from.Superuser(t, "app"), query), ask(t, to.Superuser(t, "app"), query)); diff != "" {
		t.Errorf("columns (-source +copy):\n%s", diff)
	}
	run(t, from.Superuser(t, "app"), "create function public.of_superusers() returns int language internal as 'pg_backend_pid'; alter table public.t add d int default public.of_superusers()")
	if _, err := newPlace(t).bring(t, from.source()); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "none of the source's tables") {
		t.Errorf("with no table: %v", err)
	}
}

// contents selects the rows of every table of a database, in a fixed order.
const contents = `do $$ declare r record; n text; begin
	create temp table contents (name text, rows text);
	for r in select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relispopulated loop
		execute format('select count(*) || '' '' || coalesce(md5(string_agg(t::text, chr(10) order by t::text)), '''') from only %s t', r.name) into n;
		insert into contents values (r.name, n);
	end loop; end $$;
	select * from contents order by 1`

// describe returns pg_dump's description of the schema, without owners and session statements.
func describe(t testing.TB, d *postgrestest.Database) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(d.Spec.Bin.Dir, "pg_dump"), "--schema-only", "--no-owner", "--no-privileges",
		"--no-subscriptions", "--no-security-labels", "-h", d.SocketDir(t), "-p", fmt.Sprint(d.Spec.Config.Port), "-U", postgres.Superuser, "app")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, `\`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wanted removes from the source's description what owners cannot have here, and maps its roles.
func wanted(lines []string) []string {
	var kept []string
	skip := false
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "COMMENT ON EVENT TRIGGER"), strings.HasPrefix(line, "COMMENT ON POLICY own"), strings.HasPrefix(line, "CREATE POLICY own"),
			strings.Contains(line, "EXTENSION dblink"), strings.Contains(line, "EXTENSION IF NOT EXISTS dblink"),
			strings.HasPrefix(line, "CREATE FOREIGN DATA WRAPPER"):
			continue
		case strings.HasPrefix(line, "CREATE EVENT"), strings.HasPrefix(line, "CREATE SERVER"), strings.HasPrefix(line, "CREATE USER MAPPING"),
			strings.HasPrefix(line, "CREATE FOREIGN TABLE"):
			skip = true
		}
		if !skip {
			line = strings.Replace(line, ` TO PUBLIC, writer USING`, " TO PUBLIC USING", 1)
			kept = append(kept, line)
		}
		if strings.HasSuffix(line, ";") {
			skip = false
		}
	}
	return kept
}

// checkOwners checks that everything belongs to the new owner.
func checkOwners(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	others := ask(t, conn, `select c.oid::regclass, relowner::regrole from pg_class c join pg_namespace n on n.oid = relnamespace
			where relowner <> 'app'::regrole and nspname !~ '^pg_' and nspname <> 'information_schema'
		union all select oid, lomowner::regrole from pg_largeobject_metadata where lomowner <> 'app'::regrole
		union all select oid, nspowner::regrole from pg_namespace where oid >= 16384 and nspowner <> 'app'::regrole and nspname !~ '^pg_' and nspname <> 'extensions'
		union all select p.oid, proowner::regrole from pg_proc p where oid >= 16384 and proowner <> 'app'::regrole
			and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype in ('e', 'i'))`)
	if others != "" {
		t.Errorf("not the owner's:\n%s", others)
	}
}

// checkPrivileges checks the privileges of PUBLIC, that no other role is named, and that the read-only role can read
// everything, whatever the source granted.
func checkPrivileges(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	got := ask(t, conn, `select has_function_privilege('public', 'shop.secret()', 'execute'), has_schema_privilege('public', 'shop', 'usage'),
		has_table_privilege('public', 'shop.parent', 'select'), has_table_privilege('public', 'shop.orders', 'select'),
		(select count(*) from pg_largeobject_metadata m, aclexplode(lomacl) g where g.grantee = 0 and m.oid = 50003),
		(select string_agg(defaclobjtype::text || ' ' || defaclacl::text, ', ') from pg_default_acl where defaclnamespace <> 0),
		(select count(*) from pg_roles where rolname in ('auditor', 'writer')),
		(select count(*) from pg_class where relowner = 'app'::regrole and relkind in ('r', 'p', 'v', 'm', 'S') and not
			(has_table_privilege('app_readonly', oid, 'select') and has_schema_privilege('app_readonly', relnamespace, 'usage')))`)
	if want := "f|t|t|f|1|r {=a/app}|0|0\n"; got != want {
		t.Errorf("privileges: %s, not %s", got, want)
	}
}

// talk starts a server that is not PostgreSQL, sends a text and hangs up. It returns the port.
func talk(t *testing.T, text string) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(text))
			conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
