package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/testenv"
)

// TestScripts runs the scripts in testdata/script: client commands as users
// type them, against an appliance. Each script has its own organization.
func TestScripts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--warm", "3")
	testscript.Run(t, testscript.Params{
		Dir:                 "../testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return m.setUpScript(env) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       scriptCode,
			"eventually": scriptEventually,
			"field":      scriptField,
			"fake":       scriptFake,
			"operator":   m.scriptOperator,
		},
	})
}

// setUpScript gives a script an organization, its keys, and a home.
func (m *machine) setUpScript(env *testscript.Env) error {
	org := filepath.Base(env.WorkDir)
	key := func(args ...string) (string, error) {
		out, stderr, code := m.run("", append([]string{"admin", "key", "create", "--org", org, "--name", "script"}, args...)...)
		if code != 0 {
			return "", errors.New(stderr)
		}
		return strings.TrimSpace(out), nil
	}
	if _, stderr, code := m.run("", "admin", "org", "create", org); code != 0 {
		return errors.New(stderr)
	}
	full, err := key("--preset", "full_access", "--allow-dangerous")
	if err != nil {
		return err
	}
	reading, err := key("--preset", "read_only")
	if err != nil {
		return err
	}
	url := strings.TrimSuffix(m.api, "/v1")
	env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
	env.Setenv("BROWSER", "false")
	env.Setenv("ORG", org)
	env.Setenv("DATA_DIR", m.dataDir)
	env.Setenv("HOLDFAST_URL", url)
	env.Setenv("HOLDFAST_API_KEY", full)
	env.Setenv("READING_KEY", reading)
	return nil
}

// scriptCode implements "code N PROGRAM…": it runs a program, which must end
// with that exit code.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// scriptEventually implements "eventually PROGRAM…": it runs a program until it
// succeeds, for at most a minute. The appliance also makes its own backups, one
// at a time.
func scriptEventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually program...")
	}
	var err error
	if !testenv.Poll(time.Minute, func() bool {
		err = ts.Exec(args[0], args[1:]...)
		return err == nil
	}) {
		ts.Fatalf("%v", err)
	}
}

// scriptField implements "field VARIABLE a.b.0": it stores a field of the JSON
// on the last standard output in a variable.
func scriptField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field VARIABLE path.of.field")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for part := range strings.SplitSeq(args[1], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			ts.Check(err)
			value = v[i]
		}
	}
	if value == nil {
		ts.Fatalf("there is no %s", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}

// scriptOperator implements "operator ARGUMENT…": an operator command.
func (m *machine) scriptOperator(ts *testscript.TestScript, neg bool, args []string) {
	if _, stderr, code := m.run("", append([]string{"admin"}, args...)...); (code != 0) != neg {
		ts.Fatalf("exit code %d: %s", code, stderr)
	}
}

// scriptFake implements "fake KEY ANSWER…": an appliance with responses that a
// real one does not give on demand. FAKE_URL is its address.
func scriptFake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fake KEY ANSWER...")
	}
	server := httptest.NewServer(&fakeAppliance{key: args[0], answers: args[1:]})
	ts.Defer(server.Close)
	ts.Setenv("FAKE_URL", server.URL)
}
