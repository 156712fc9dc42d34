package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// TestMoveAppliance moves a running appliance to another data directory and,
// after stopping that, to a third: databases with their data, objects, keys and
// users are there and work.
func TestMoveAppliance(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	m.start()
	shop, old := m.createDatabase("shop"), m.createDatabase("old")
	query(t, m.connectionURL(shop.ID), "create table t as select generate_series(1, 1000) n")
	query(t, m.connectionURL(old.ID), "create table t as select 7 n")
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "files"}, nil)
	var buckets []struct{ ID string }
	m.must("GET", "/buckets", nil, &buckets)
	small, large := "hello", strings.Repeat("large object ", 20_000)
	m.must("POST", "/buckets/"+buckets[0].ID+"/objects?key=small.txt", strings.NewReader(small), nil)
	m.must("POST", "/buckets/"+buckets[0].ID+"/objects?key=large.txt", strings.NewReader(large), nil)
	if _, stderr, code := m.run("long enough for anybody\n", "admin", "user", "create", "ada@example.com"); code != 0 {
		t.Fatal(stderr)
	}

	dir := t.TempDir()
	first := filepath.Join(dir, "first.tar")
	if out, stderr, code := m.run("", "admin", "export-all", first); code != 0 || !strings.HasPrefix(out, first) {
		t.Fatalf("export-all: %d %s%s", code, out, stderr)
	}
	if info, err := os.Stat(first); err != nil || info.Mode() != 0o600 {
		t.Errorf("the archive: %v, %v", info.Mode(), err)
	}
	m.stop()

	second := m.arrive(first)
	second.start()
	second.holds(t, shop.ID, buckets[0].ID, small, large)
	second.awaitAvailable(old.ID)
	if got := query(t, second.connectionURL(old.ID), "select n from t"); got != "7" {
		t.Errorf("old has %s", got)
	}
	if out, _, _ := second.run("", "admin", "user", "list"); !strings.Contains(out, "ada@example.com") {
		t.Errorf("people: %s", out)
	}
	query(t, second.connectionURL(shop.ID), "insert into t values (1001)")
	second.stop()

	passphrase := filepath.Join(dir, "passphrase")
	if err := os.WriteFile(passphrase, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := filepath.Join(dir, "sealed.age")
	second.mustRun("admin", "export-all", sealed, "--passphrase-file", passphrase)
	text, err := os.ReadFile(sealed)
	if err != nil || !bytes.HasPrefix(text, []byte("age-encryption.org/")) || bytes.Contains(text, []byte("holdfast.db")) {
		t.Errorf("the sealed archive begins with %.40q, %v", text, err)
	}
	if _, stderr, code := m.elsewhere().run("", "admin", "import-all", sealed); code != 2 || !strings.Contains(stderr, "--passphrase-file") {
		t.Errorf("without the passphrase: %d %s", code, stderr)
	}
	third := m.arrive(sealed, "--passphrase-file", passphrase)
	third.start()
	third.awaitAvailable(shop.ID)
	if got := query(t, third.connectionURL(shop.ID), "select count(*) from t"); got != "1001" {
		t.Errorf("the third has %s rows", got)
	}
}

// holds checks that the moved content is there, and that the appliance
// continues to make backups.
func (m *machine) holds(t *testing.T, shop, bucket, small, large string) {
	t.Helper()
	m.awaitAvailable(shop) // it is rebuilt
	if got := query(t, m.connectionURL(shop), "select count(*) || ' ' || sum(n) from t"); got != "1000 500500" {
		t.Errorf("shop has %s", got)
	}
	for key, want := range map[string]string{"small.txt": small, "large.txt": large} {
		var object struct {
			URL string `json:"download_url"`
		}
		m.must("GET", "/buckets/"+bucket+"/objects/"+key, nil, &object)
		if status, got := download(t, object.URL); status != 200 || got != want {
			t.Errorf("%s: %d, with %d bytes, not %d", key, status, len(got), len(want))
		}
	}
	testenv.Eventually(t, "a backup there", func() bool {
		status, _ := m.do("POST", "/databases/"+shop+"/backups", map[string]any{})
		return status == 200
	})
}

func (m *machine) mustRun(args ...string) string {
	m.t.Helper()
	out, stderr, code := m.run("", args...)
	if code != 0 {
		m.t.Fatalf("%v: %d %s", args, code, stderr)
	}
	return out
}

// elsewhere returns another machine, with the first one's key.
func (m *machine) elsewhere() *machine {
	m.t.Helper()
	other := newMachine(m.t)
	other.key, other.description = m.key, m.description
	return other
}

// arrive imports an archive on another machine.
func (m *machine) arrive(archive string, args ...string) *machine {
	m.t.Helper()
	other := m.elsewhere()
	other.mustRun(append([]string{"admin", "import-all", archive}, args...)...)
	return other
}

// TestMoveRefuses checks that import-all refuses invalid archives and leaves
// nothing.
func TestMoveRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--no-first-key", "--warm", "0")
	m.stop()
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.tar")
	m.mustRun("admin", "export-all", whole)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(text)
	at := bytes.Index(damaged, []byte("secret.key"))
	damaged[at+512] ^= 1 // in its content, after the headers
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"truncated":    {text[:len(text)/2], "it ends in "},
		"without sums": {text[:bytes.LastIndex(text, []byte("SHA256SUMS"))-1024], "it ends in "},
		"damaged":      {damaged, "is not what was written"},
		"empty":        {nil, "not an archive of an appliance"},
		"nonsense":     {bytes.Repeat([]byte("nonsense"), 1000), "not an archive of an appliance"},
	} {
		file := filepath.Join(dir, "bad.tar")
		if err := os.WriteFile(file, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		other := newMachine(t)
		_, stderr, code := other.run("", "admin", "import-all", file)
		if code != 1 || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: %d %s", name, code, stderr)
		}
		if left, _ := os.ReadDir(other.dataDir); len(left) > 0 {
			t.Errorf("%s: it leaves %v", name, left)
		}
	}
	killImport(t, whole, text)
	before := digest(t, m.dataDir)
	if _, stderr, code := m.run("", "admin", "import-all", whole); code != 6 || !strings.Contains(stderr, "is not empty") {
		t.Errorf("over an appliance: %d %s", code, stderr)
	}
	if digest(t, m.dataDir) != before {
		t.Error("the appliance was changed")
	}
	if _, stderr, code := m.run("", "admin", "export-all", whole); code != 2 || !strings.Contains(stderr, "is there already") {
		t.Errorf("over a file: %d %s", code, stderr)
	}
	if _, stderr, code := newMachine(t).run("", "admin", "export-all", filepath.Join(dir, "none.tar")); code != 1 || !strings.Contains(stderr, "there is no appliance") {
		t.Errorf("of nothing: %d %s", code, stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// killImport kills an import in the middle: its remains are not served, and the
// next import overwrites them.
func killImport(t *testing.T, archive string, text []byte) {
	t.Helper()
	m := newMachine(t)
	cmd := exec.Command(program, "admin", "import-all", "-", "--data-dir", m.dataDir)
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = stdin.Write(text[:len(text)/2])
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Catch(t, time.Minute, "the first files", func() bool {
		files, _ := filepath.Glob(filepath.Join(m.dataDir, "arriving", "*"))
		return len(files) > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	out, err := exec.Command(program, "serve", "--data-dir", m.dataDir, "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "holds an incomplete import") {
		t.Errorf("serve on half an appliance: %v %s", err, out)
	}
	if out := m.mustRun("admin", "import-all", archive, "--json"); !strings.Contains(out, `"databases":null`) {
		t.Errorf("the import says %s", out)
	}
	if left, _ := filepath.Glob(filepath.Join(m.dataDir, "arriving")); len(left) > 0 {
		t.Error("the directory of the import is left")
	}
}
