package engine

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// origin is a PostgreSQL server elsewhere that its owner imports from.
type origin struct {
	*postgrestest.Database
	password string
}

func newOrigin(t testing.TB, script string) *origin {
	t.Helper()
	o := &origin{password: `hunter2 p'a"s s\w%:/@?#ö`}
	o.Database = postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.HBA.Users = append(s.HBA.Users, "mover")
		s.HBA.Allow = append(s.HBA.Allow, netip.MustParsePrefix("::1/128"))
		s.Config.Settings = map[string]string{"log_statement": "all", "log_lock_waits": "on", "fsync": "off"}
	})
	conn := o.Superuser(t, "app")
	for _, sql := range []string{
		"create role mover superuser login password '" + strings.ReplaceAll(o.password, "'", "''") + "'",
		"set search_path = public",
		script,
	} {
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return o
}

// url returns the source URL.
func (o *origin) url() string {
	u := url.URL{Scheme: "postgresql", User: url.UserPassword("mover", o.password), Host: fmt.Sprintf("127.0.0.1:%d", o.Spec.Config.Port), Path: "/app"}
	return u.String()
}

func (a *appliance) beginImport(t testing.TB, in imports.NewImport) model.Import {
	t.Helper()
	in.Project = a.project
	record, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), in)
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	return record
}

func (a *appliance) importNow(t testing.TB, id string) model.Import {
	t.Helper()
	record, err := a.Imports.Get(a.call(model.ActionImportGet), id)
	if err != nil {
		t.Fatalf("get import: %v", err)
	}
	return record
}

// awaitImport waits for the end of the import.
func (a *appliance) awaitImport(t testing.TB, id string) model.Import {
	t.Helper()
	var record model.Import
	defer func() {
		if t.Failed() {
			t.Logf("the import: %+v", record)
		}
	}()
	testenv.Within(t, 3*time.Minute, "the end of the import", func() bool {
		record = a.importNow(t, id)
		return record.Status.Final()
	})
	return record
}

func (a *appliance) imported(t testing.TB, in imports.NewImport) (model.Import, databases.Connection) {
	t.Helper()
	record := a.awaitImport(t, a.beginImport(t, in).ID)
	if record.Status != model.ImportCompleted {
		t.Fatalf("the import is %s: %s %+v %+v", record.Status, record.Error, record.Errors, record.Log)
	}
	a.awaitIdle(t)
	c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), record.Database)
	if err != nil {
		t.Fatal(err)
	}
	return record, c
}

// An allow-list entry for the appliance's own address gives no access to another organization's database; an
// organization's own database can be copied.
func TestImportFromTheSameAppliance(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	_, c := a.createDatabase(t, "shop")
	run(t, c, "create table orders as select 1 as id")
	record, copied := a.imported(t, imports.NewImport{Name: "copy", SourceURL: model.NewSecret(c.URL())})
	if !slices.ContainsFunc(record.Log, func(l model.ImportLine) bool {
		return strings.Contains(l.Message, `to "app_readonly" left out`)
	}) {
		t.Errorf("the grants to the source's reader: %+v", record.Log)
	}
	if !slices.ContainsFunc(record.Roles, func(r model.ImportRole) bool { return r.Name == "app_readonly" && r.Grants > 0 }) {
		t.Errorf("the roles that are left out: %+v", record.Roles)
	}
	if !answer[bool](t, copied, "select has_table_privilege('app_readonly', 'orders', 'select')") {
		t.Error("the copy's reader does not read the copy")
	}
	b := a.elsewhere(t, "globex")
	record = b.awaitImport(t, b.beginImport(t, imports.NewImport{Name: "theft", SourceURL: model.NewSecret(c.URL())}).ID)
	if record.Status != model.ImportFailed || !strings.Contains(record.Error, "not your organization's") {
		t.Errorf("another organization's import: %+v", record)
	}
}

// Nobody imports from the private port of a server whose clients use a proxy: the server itself admits every user from
// there.
func TestImportFromAPrivatePort(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table orders as select 1 as id")
	a.letSleep(t, db.ID, time.Hour)
	address, _ := a.Databases.Instances.ClientAddress(db.ID)
	private := url.URL{Scheme: "postgresql", User: url.UserPassword(c.User, c.Password.Reveal()), Host: address, Path: "/shop"}
	b := a.elsewhere(t, "globex")
	check := func(by *appliance, name, want string) {
		t.Helper()
		record := by.awaitImport(t, by.beginImport(t, imports.NewImport{Name: name, SourceURL: model.NewSecret(private.String())}).ID)
		if record.Status != model.ImportFailed || !strings.Contains(record.Error, want) {
			t.Errorf("%s: %s, %s, %d rows", name, record.Status, record.Error, record.RowsCopied)
		}
	}
	check(a, "copy", fmt.Sprintf("use the port %d", db.Port))
	check(b, "theft", "not your organization's")
	a.imported(t, imports.NewImport{Name: "allowed", SourceURL: model.NewSecret(c.URL())})
	recorded := postgres.RecordedPort(a.Databases.DataDirectory(db.ID, 1)) // what counts before the server is adopted
	if got := net.JoinHostPort("127.0.0.1", strconv.Itoa(recorded)); got != address {
		t.Errorf("the server of %s is at %s, not %s", db.ID, got, address)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, `create table orders as select n as id, n * 10 as cents from generate_series(1, 2000) n; alter table orders add primary key (id);
		alter role app password 'changed by the source'`)
	a := startEngine(t)
	record, c := a.imported(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url())})
	if record.TablesTotal != 1 || record.TablesDone != 1 || record.RowsCopied != 2000 || record.BytesCopied == 0 || record.Progress != 100 ||
		record.Source.Version == "" || record.Source.User != "mover" || record.CompletedAt == nil {
		t.Errorf("the record: %+v", record)
	}
	if got := answer[string](t, c, "select count(*) || ' ' || sum(cents) from orders"); got != "2000 20010000" {
		t.Errorf("read %s", got)
	}
	// Over the socket the appliance's own account may be the owner, as in every database, and no other account may.
	a.asSuperuser(t, record.Database, `do $$ begin
		if exists (select from pg_hba_file_rules where type = 'local' and auth_method not in ('peer', 'reject')) then
			raise 'a rule admits other accounts over the socket';
		end if;
	end $$`)
	if c.User != model.DefaultOwner || c.Password.Reveal() == o.password {
		t.Errorf("the credentials: %s", c.User)
	}
	if status, reason := a.status(t, record.Database); status != model.DatabaseAvailable {
		t.Errorf("the database is %s: %s", status, reason)
	}
	list, err := a.Imports.List(a.call(model.ActionImportList), imports.Filter{}, core.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != record.ID {
		t.Errorf("the list: %+v, %v", list, err)
	}
	other := a.call(model.ActionImportGet)
	other.Organization = "org_other"
	if _, err := a.Imports.Get(other, record.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("another organization's import: %v", err)
	}
	a.checkTidy(t)
	a.abandon(t)
	next := a.reopen(t)
	if again := next.importNow(t, record.ID); again.Status != model.ImportCompleted || len(again.Log) != len(record.Log) {
		t.Errorf("after a restart: %+v", again)
	}
	if got := answer[int](t, c, "select count(*) from orders"); got != 2000 {
		t.Errorf("read %d after a restart", got)
	}
}

func TestImportCredentials(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "create table t as select 1 as n")
	a := startEngine(t)
	source := model.NewSecret(o.url())
	_, c := a.imported(t, imports.NewImport{Name: "same", SourceURL: source, SameCredentials: true})
	if c.User != "mover" || c.Password.Reveal() != o.password || answer[int](t, c, "select n from t") != 1 {
		t.Errorf("the source's credentials: %s", c.User)
	}
	_, c = a.imported(t, imports.NewImport{Name: "own", SourceURL: source, Username: "me", Password: model.NewSecret("quite another password")})
	if c.User != "me" || c.Password.Reveal() != "quite another password" || answer[string](t, c, "select current_user::text") != "me" {
		t.Errorf("credentials of its own: %s", c.User)
	}
}

// Errors that need no contact with the source are reported at once, and leave nothing behind.
func TestImportRefusesAtOnce(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	const password = "kept-from-the-messages"
	with := func(rest string) imports.NewImport {
		return imports.NewImport{Name: "shop", SourceURL: model.NewSecret("postgres://u:" + password + rest)}
	}
	for name, test := range map[string]struct {
		in   imports.NewImport
		says string
	}{
		"a file":                {with("@h/d?sslrootcert=/etc/passwd"), "sslrootcert"},
		"a link-local address":  {with("@169.254.169.254/d"), "link-local"},
		"a name of PostgreSQL":  {imports.NewImport{Name: "postgres", SourceURL: with("@h/d").SourceURL}, "name"},
		"a reserved user":       {imports.NewImport{Name: "shop", SourceURL: model.NewSecret("postgres://postgres:" + password + "@h/d"), SameCredentials: true}, "same_credentials"},
		"a weak password":       {imports.NewImport{Name: "shop", SourceURL: model.NewSecret("postgres://me:sunshine1234@h/d"), SameCredentials: true}, "give another password"},
		"a short one to take":   {imports.NewImport{Name: "shop", SourceURL: model.NewSecret("postgres://me:s3cr%65t@h/d"), SameCredentials: true}, "give another password"},
		"a common password":     {imports.NewImport{Name: "shop", SourceURL: with("@h/d").SourceURL, Password: model.NewSecret("sunshine1234")}, "password: is easy to guess"},
		"no password to take":   {imports.NewImport{Name: "shop", SourceURL: model.NewSecret("postgres://me@h/d"), SameCredentials: true}, "same_credentials"},
		"both":                  {imports.NewImport{Name: "shop", SourceURL: with("@h/d").SourceURL, SameCredentials: true, Username: "me"}, "same_credentials"},
		"a bad user":            {imports.NewImport{Name: "shop", SourceURL: with("@h/d").SourceURL, Username: "pg_me"}, "username"},
		"a short password":      {imports.NewImport{Name: "shop", SourceURL: with("@h/d").SourceURL, Password: model.NewSecret("short")}, "password"},
		"something ill-formed":  {with("%zz@h/d"), "source_url"},
		"a password with slash": {with("/@h/d"), "source_url"},
	} {
		test.in.Project = a.project
		_, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), test.in)
		if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := with("@h/d")
	in.Project = "proj_unknown"
	if _, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), in); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("an unknown project: %v", err)
	}
	a.createDatabase(t, "taken")
	in.Project, in.Name = a.project, "taken"
	if _, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), in); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a name that is taken: %v", err)
	}
	if list, err := a.Imports.List(a.call(model.ActionImportList), imports.Filter{}, core.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("imports are left: %+v, %v", list, err)
	}
	a.checkTidy(t)
}

// Without pg_dump no import starts, and the error names the package.
func TestImportWithoutPgDump(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	a.Engine.Core.Config.Search = binaries.Search{Installed: func() []string { return nil }}
	a.Engine.Databases.Binaries.Dir = t.TempDir()
	_, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), imports.NewImport{
		Project: a.project, Name: "shop", SourceURL: model.NewSecret("postgres://u:p@h/d"),
	})
	if want := fmt.Sprintf("postgresql-client-%d", a.Databases.Binaries.Major); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), want) {
		t.Errorf("without pg_dump: %v", err)
	}
}

// An import that fails on its source leaves its record with the reason for a while, and the name is free.
func TestImportThatFails(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, "create table t (n int)")
	a := startEngine(t)
	right := o.url()
	for name, test := range map[string]struct{ url, says string }{
		"a wrong password":    {strings.Replace(right, "hunter2", "hunter3", 1), "password"},
		"an unknown database": {strings.Replace(right, "/app", "/other", 1), ""},
		"nothing there":       {"postgres://u:hunter2@127.0.0.1:1/d", "nothing listens"},
		"an unknown host":     {"postgres://u:hunter2@no-such-host.invalid/d", "no-such-host.invalid"},
	} {
		record := a.awaitImport(t, a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(test.url)}).ID)
		a.awaitIdle(t)
		if record.Status != model.ImportFailed || !strings.Contains(record.Error, test.says) || strings.Contains(record.Error, "hunter") {
			t.Errorf("%s: %s: %s", name, record.Status, record.Error)
		}
		if _, err := a.Databases.Get(a.call(model.ActionDatabaseGet), record.Database); model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("%s: the database is left: %v", name, err)
		}
	}
	kept, _ := a.imported(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(right)})
	var oldest, last string
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		for range imports.ImportsKept + 10 {
			last = a.Core.NewID(model.ResourceImport)
			if oldest == "" {
				oldest = last
			}
			if err := tx.Imports().Insert(model.Import{ID: last, Organization: kept.Organization, Database: "gone", Status: model.ImportFailed}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	a.awaitImport(t, a.beginImport(t, imports.NewImport{Name: "other", SourceURL: model.NewSecret("postgres://u:p@127.0.0.1:1/d")}).ID)
	for id, want := range map[string]model.Code{oldest: model.CodeNotFound, last: "", kept.ID: ""} {
		if _, err := a.Imports.Get(a.call(model.ActionImportGet), id); err == nil != (want == "") || err != nil && model.CodeOf(err) != want {
			t.Errorf("the record %s: %v", id, err)
		}
	}
	a.checkTidy(t)
}

// slow is a table that takes forever to copy: its check constraint sleeps at every row when the new owner evaluates it.
const slow = `create function wait() returns bool language plpgsql as
		$$ begin if current_user = 'app' then perform pg_sleep(1); end if; return true; end $$;
	create table few as select generate_series(1, 10) n;
	create table slow (n int, pad text, check (wait()));
	insert into slow select n, repeat('x', 2000) from generate_series(1, 20000) n`

func (a *appliance) awaitCopying(t testing.TB, id string) {
	t.Helper()
	testenv.Catch(t, time.Minute, "rows that are copied", func() bool {
		now := a.importNow(t, id)
		if now.Status.Final() {
			t.Fatalf("the import is %s already: %s", now.Status, now.Error)
		}
		return now.Status == model.ImportCopying && now.RowsCopied > 100
	})
}

func TestImportIsCancelledByDeleting(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, slow)
	a := startEngine(t)
	record := a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url())})
	a.awaitCopying(t, record.ID)
	view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), record.Database)
	if err != nil || view.Status != model.DatabaseImporting || view.RunningOp == nil || view.RunningOp.Type != model.OperationImport {
		t.Errorf("during the import: %+v, %v", view, err)
	}
	for name, act := range map[string]func() error{
		"restart": func() error {
			_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), record.Database)
			return err
		},
		"backup": func() error {
			_, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), record.Database)
			return err
		},
	} {
		if err := act(); model.CodeOf(err) != model.CodeConflict {
			t.Errorf("%s during an import: %v", name, err)
		}
	}
	c, err := a.Databases.Connection(a.call(model.ActionDatabaseConnection), record.Database)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, c)
	call := a.call(model.ActionDatabaseDelete)
	if _, err := a.Databases.Delete(t.Context(), call, record.Database); err != nil || !call.Audited {
		t.Fatalf("delete: %v, audited %v", err, call.Audited)
	}
	if now := a.importNow(t, record.ID); now.Status != model.ImportFailed || !strings.Contains(now.Error, "deleted") {
		t.Errorf("the import is %s: %s", now.Status, now.Error)
	}
	if trash, err := a.Databases.TrashList(a.call(model.ActionTrashList), core.Filter{}, core.Page{}); err != nil || len(trash.Items) != 0 {
		t.Errorf("half an import lies in the trash: %+v, %v", trash, err)
	}
	a.awaitIdle(t)
	a.checkTidy(t)
	o.checkLeft(t)
	a.createDatabase(t, "shop")
}

// Running imports count with the sizes of their sources: two that fit individually must not exceed the plan or the disk
// together.
func TestImportsShareTheRoom(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, slow)
	var size int64
	if err := o.Superuser(t, "app").QueryRow(t.Context(), "select pg_database_size('app')").Scan(&size); err != nil {
		t.Fatal(err)
	}
	plan, err := model.NewPlan("tiny", map[string]int64{"database_bytes": size * 3 / 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t, newDataDir(t))
	cfg.Plans = map[string]model.Plan{"tiny": plan}
	a := startEngineOn(t, cfg)
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), "tiny"); err != nil {
		t.Fatal(err)
	}
	in := imports.NewImport{Name: "first", SourceURL: model.NewSecret(o.url())}
	first := a.beginImport(t, in)
	a.awaitCopying(t, first.ID)
	fails := func(says string) {
		t.Helper()
		in.Name = "next"
		next := a.beginImport(t, in)
		testenv.Catch(t, time.Minute, "the end of the import, or its copying", func() bool {
			next = a.importNow(t, next.ID)
			return next.Status.Final() || next.Status == model.ImportCopying
		})
		if next.Status != model.ImportFailed || !strings.Contains(next.Error, says) {
			t.Errorf("the next is %s: %s; want %s", next.Status, next.Error, says)
		}
	}
	fails("database_bytes")
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), model.PlanSelfHosted); err != nil {
		t.Fatal(err)
	}
	if still := a.Imports.StillToImport(); still < 1<<20 || still > 2*size+1<<30 {
		t.Errorf("of %d bytes %d are still to come", size, still)
	}
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), first.Database); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the room to be given back", func() bool { return a.Imports.StillToImport() == 0 })
}

// checkLeft checks that no session remains in the source.
func (o *origin) checkLeft(t testing.TB) {
	t.Helper()
	conn := o.Superuser(t, "postgres")
	testenv.Within(t, time.Minute, "the end of the source's sessions", func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where usename = 'mover'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

func TestImportThatTheApplianceDoesNotSurvive(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, slow)
	a := startEngine(t)
	record := a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url())})
	a.awaitCopying(t, record.ID)
	a.abandon(t)
	next := a.reopen(t)
	now := next.importNow(t, record.ID)
	if now.Status != model.ImportFailed || !strings.Contains(now.Error, "start the import again") || len(now.Log) == 0 {
		t.Errorf("after a restart the import is %s: %s", now.Status, now.Error)
	}
	next.checkTidy(t)
	o.checkLeft(t)
	next.createDatabase(t, "shop")
}

// TestImportKeepsThePasswordToItself searches for the source's password in every possible place, during the import and
// after it.
func TestImportKeepsThePasswordToItself(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, slow)
	a := startEngine(t)
	record := a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url())})
	testenv.Catch(t, time.Minute, "rows that are copied", func() bool {
		noPasswordInProcesses(t)
		return a.importNow(t, record.ID).RowsCopied > 100
	})
	noPasswordIn(t, a.cfg.DataDir)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), record.Database); err != nil {
		t.Fatal(err)
	}
	noPasswordIn(t, a.cfg.DataDir)
	noPasswordIn(t, filepath.Join(o.Spec.Dir, "log"))
	if text := fmt.Sprintf("%+v", a.importNow(t, record.ID)); strings.Contains(text, "hunter2") {
		t.Error("the record has the password")
	}
	err := a.Core.Meta.View(func(tx *meta.Tx) error {
		entries, _, err := tx.AuditPage(a.org, meta.AuditFilter{}, 0, 100)
		if text := fmt.Sprintf("%+v", entries); strings.Contains(text, "hunter2") || !strings.Contains(text, "import.create") {
			t.Error("the audit log has the password, or not the import")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func noPasswordInProcesses(t testing.TB) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "hunter2") {
				t.Errorf("%s has the password", path)
			}
		}
	}
}

func noPasswordIn(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // files come and go
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "hunter2") {
			t.Errorf("%s has the password", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImportIsGentle watches the source during an import: all transactions are read-only, and no lock exceeds ACCESS
// SHARE.
func TestImportIsGentle(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, slow)
	a := startEngine(t)
	record := a.beginImport(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url())})
	watch := o.Superuser(t, "app")
	samples := 0
	testenv.Catch(t, time.Minute, "rows that are copied", func() bool {
		rows, err := watch.Query(t.Context(), `select l.mode, coalesce(l.relation::regclass::text, l.locktype) from pg_locks l join pg_stat_activity s using (pid)
			where s.usename = 'mover' and l.granted and l.classid is distinct from 'pg_database'::regclass -- which whoever connects locks for a moment
			`)
		if err != nil {
			t.Fatal(err)
		}
		var mode, what string
		if _, err := pgx.ForEachRow(rows, []any{&mode, &what}, func() error {
			samples++
			if mode != "AccessShareLock" && what != "virtualxid" {
				t.Errorf("the import holds %s on %s", mode, what)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return a.importNow(t, record.ID).RowsCopied > 100
	})
	if samples == 0 {
		t.Error("no lock was seen at all")
	}
	if _, err := a.Databases.Delete(context.WithoutCancel(t.Context()), a.call(model.ActionDatabaseDelete), record.Database); err != nil {
		t.Fatal(err)
	}
	logged, err := os.ReadFile(filepath.Join(o.Spec.Dir, "log", "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for line := range strings.Lines(string(logged)) {
		// The test's superuser logs nothing, so all statements are the import's.
		_, statement, found := strings.Cut(strings.ToLower(line), "statement: ")
		statement = strings.TrimSpace(statement)
		switch {
		case !found:
		case strings.HasPrefix(statement, "begin"):
			begun++
		case strings.HasPrefix(statement, "lock table"), strings.HasPrefix(statement, "copy"):
			if !strings.HasSuffix(statement, "in access share mode") && !strings.HasSuffix(statement, "to stdout") {
				t.Errorf("the source was asked to %s", statement)
			}
		case !gentle.MatchString(statement):
			t.Errorf("the source was asked to %s", statement)
		}
	}
	if begun < 3 {
		t.Errorf("%d transactions were seen in the source's log", begun)
	}
}

// gentle matches statements that change nothing and lock nothing.
var gentle = regexp.MustCompile(`^(set|select|with|rollback|commit|prepare|execute)\b`)

// TestImportGivesItsOwnPasswords: a source with a lying server can execute anything as the new owner, who may change
// his own password. Afterwards only the recorded passwords are valid.
func TestImportGivesItsOwnPasswords(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, `create view lie as select 1 as n;
		alter function pg_catalog.pg_get_viewdef(oid) rename to pg_get_viewdef_true;
		create function pg_catalog.pg_get_viewdef(oid) returns text language sql stable strict as $$
			select 'select 1 as n; alter role app password ''known-to-the-source''; alter role app set statement_timeout = ''1s''; '
			|| 'do $x$ begin execute format(''alter database %I is_template true'', current_database()); end $x$; select 1;' $$`)
	a := startEngine(t)
	_, c := a.imported(t, imports.NewImport{Name: "shop", SourceURL: model.NewSecret(o.url())})
	if got := answer[string](t, c, "select current_user::text"); got != "app" {
		t.Errorf("read %s", got)
	}
	c.Password = model.NewSecret("known-to-the-source")
	if conn, err := pgx.Connect(t.Context(), c.URL()); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the source's password lets in")
	}
}
