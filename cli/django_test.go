package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestDjango runs the commands of a Django project as its authors do: in a private
// sandbox, whose role may create the database of the tests, in parallel ones too.
func TestDjango(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	python, project := djangoProject(t)
	cache, _ := privateCache(t)
	for _, args := range [][]string{
		{"migrate", "-v", "0"},
		{"test", "-v", "2"},
		{"test", "--parallel", "2"},
	} {
		run := append([]string{"run", "--private", "--", python, "manage.py"}, args...)
		cmd := exec.Command(program, run...)
		cmd.Dir = project
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s", "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		if args[0] == "test" && !strings.Contains(string(out), "Ran 3 tests") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// TestCreateRoleInAnAppliance runs a Django project's tests, createdb and dropdb with the URL of a role that creates
// databases, as it is given: what they make is dropped, or kept, as they say.
func TestCreateRoleInAnAppliance(t *testing.T) {
	t.Parallel()
	python, project := djangoProject(t)
	m := newMachine(t)
	m.start("--backup-interval", "0")
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	var made struct{ Connection wire.Connection }
	m.must("POST", "/databases/"+m.createDatabase("shop").ID+"/roles", map[string]any{"name": "tests", "access": "create"}, &made)
	c := made.Connection.Environment
	for _, step := range []struct {
		command string
		left    string
	}{
		{python + " manage.py migrate -v 0", "tests"},
		{python + " manage.py test", "tests"},
		{python + " manage.py test --parallel 2", "tests"},
		{python + " manage.py test --keepdb", "test_tests tests"},
		{python + " manage.py test --keepdb", "test_tests tests"},
		{"createdb other", "other test_tests tests"},
		{"dropdb test_tests", "other tests"},
		{"dropdb --force other", "tests"},
	} {
		cmd := exec.Command("sh", "-c", step.command)
		cmd.Dir = project
		cmd.Env = append(os.Environ(), "DATABASE_URL="+c.DatabaseURL, "PGHOST="+c.Host, "PGPORT="+c.Port, "PGUSER="+c.User, "PGPASSWORD="+c.Password,
			"PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(step.command, "manage.py test") && !strings.Contains(string(out), "Ran 3 tests") {
			t.Errorf("%s: %v\n%s", step.command, err, out)
		}
		left := query(t, c.DatabaseURL, "select coalesce(string_agg(datname, ' ' order by datname), '') from pg_database where datdba = 'holdfast_create'::regrole")
		if left != step.left {
			t.Errorf("%s leaves %q", step.command, left)
		}
	}
}

// djangoProject returns the Python interpreter that has Django, and the project.
func djangoProject(t *testing.T) (python, project string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	p := driverPrograms()[1]
	p.part = "cli/testdata/drivers/installed/python/bin/django-admin"
	p.requirePart(t, root)
	return filepath.Join(root, "cli/testdata/drivers/installed/python/bin/python"), filepath.Join(root, "cli/testdata/django")
}

// TestRunPrivatelyAsSuperuser checks that the role of a private sandbox is a superuser
// of its own server only, and that of a shared appliance's sandbox is not. The roles
// that it makes can log in, and two-phase commits work.
func TestRunPrivatelyAsSuperuser(t *testing.T) {
	t.Parallel()
	cache, _ := privateCache(t)
	const ask = `psql "$DATABASE_URL" -XAtqc 'select rolsuper, rolcreatedb from pg_roles where rolname = current_user' -c 'create database beside' -c '\c beside' -c 'create extension "uuid-ossp"' && psql -d postgres -XAtqc 'drop database beside' -c begin -c "prepare transaction 'two-phase'" -c "rollback prepared 'two-phase'" -c "create role other login password 'other''s own'" && PGUSER=other PGPASSWORD="other's own" psql -XAtqc 'select current_user'`
	run := func(args ...string) (string, error) {
		cmd := exec.Command(program, append(append([]string{"run"}, args...), "--", "sh", "-c", ask)...)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("--private"); err != nil || !strings.HasPrefix(out, "t|") || !strings.HasSuffix(out, "\nother\n") {
		t.Errorf("private: %v: %s", err, out)
	}
	m := newMachine(t)
	m.start("--backup-interval", "0")
	if out, err := run("--data-dir", m.dataDir); err == nil || !strings.HasPrefix(out, "f|f") || !strings.Contains(out, "permission denied to create database") {
		t.Errorf("shared: %v: %s", err, out)
	}
}
