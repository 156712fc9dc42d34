package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/server/operator"
)

// TestLoadByAnotherUser: root executes the program that the process behind the socket names as that process's user, without
// root's own variables.
func TestLoadByAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it is about root")
	}
	const nobody = 65534
	dir := t.TempDir()
	for at := dir; at != filepath.Clean(os.TempDir()); at = filepath.Dir(at) { // the other user has to get there
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string, mode os.FileMode, owner int) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
		return path
	}
	result := write("result", "", 0o666, nobody)
	program := write("psql", "#!/bin/sh\nexec > "+result+"\nid -u\nid -G\necho token=$MY_TOKEN\necho database=$PGDATABASE\ncat\n", 0o755, nobody)
	script := write("schema.sql", "create table t ()", 0o600, 0)
	l := &Lease{Sandbox: operator.Sandbox{Psql: program}, Socket: write("operator.sock", "", 0o600, nobody), lost: make(chan struct{})}
	t.Setenv("PATH", "/nonexistent")
	if err := l.Load(t.Context(), script, []string{"PATH=/usr/bin:/bin", "MY_TOKEN=secret", "PGDATABASE=shop"}); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(result)
	if want := "65534\n65534\ntoken=\ndatabase=shop\ncreate table t ()"; err != nil || strings.TrimSpace(string(said)) != want {
		t.Errorf("it was run with %q, %v", said, err)
	}
}
