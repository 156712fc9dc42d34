package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/testenv"
)

// TestAdmin runs the operator commands against a running appliance, and again
// on the files of a stopped one.
func TestAdmin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if _, stderr, code := m.run("", "admin", "org", "list"); code != 1 || !strings.Contains(stderr, "no appliance") {
		t.Errorf("without an appliance: %d, %s", code, stderr)
	}
	m.start()
	db := m.createDatabase("shop")
	adminCommands(t, m, "running")
	m.stop()
	adminCommands(t, m, "stopped")
	m.start()
	m.awaitAvailable(db.ID)
	deletable := createKey(t, m, "--preset", "full_access", "--allow-dangerous", "--expires", "90d")
	m.key = deletable
	m.must("DELETE", "/databases/"+db.ID, nil, nil)
	if out, stderr, code := m.run("", "admin", "backup-metadata"); code != 0 || !strings.Contains(out, m.dataDir) {
		t.Errorf("backup-metadata: %d %s%s", code, out, stderr)
	}
	if _, stderr, code := m.run("", "admin", "trash", "empty"); code != 2 || !strings.Contains(stderr, "the organization default has deleted") {
		t.Errorf("the trash was to be emptied without a question: %d %s", code, stderr)
	}
	if out, _, _ := m.run("", "admin", "trash", "list"); !strings.Contains(out, db.ID) {
		t.Errorf("the trash: %s", out)
	}
	if _, stderr, code := m.run("", "admin", "trash", "restore", db.ID); code != 0 {
		t.Errorf("restore from the trash: %s", stderr)
	}
	m.awaitAvailable(db.ID)
	m.must("DELETE", "/databases/"+db.ID, nil, nil)
	if out, stderr, code := m.run("", "admin", "trash", "empty", "--yes"); code != 0 || out != "removed: 1 databases, 0 buckets and 0 objects\n" {
		t.Errorf("empty the trash: %d %s%s", code, out, stderr)
	}
}

func createKey(t testing.TB, m *machine, args ...string) string {
	t.Helper()
	out, stderr, code := m.run("", append([]string{"admin", "key", "create", "--org", "default", "--name", "test", "--json"}, args...)...)
	var created struct {
		APIKey string `json:"api_key"`
		Key    struct{ ID, Preview, Name string }
	}
	if err := json.Unmarshal([]byte(out), &created); code != 0 || err != nil || created.Key.ID == "" {
		t.Fatalf("create key: %d %s %s %v", code, out, stderr, err)
	}
	return created.APIKey
}

// checkAuditExport checks that the exported entries form a chain.
func checkAuditExport(t *testing.T, run func(...string) string) {
	t.Helper()
	previous := ""
	for _, log := range [][]string{nil, {"--appliance"}} {
		lines := strings.Split(strings.TrimSpace(run(append([]string{"admin", "audit", "export"}, log...)...)), "\n")
		previous = ""
		for i, line := range lines {
			var entry struct {
				ID           string
				PreviousHash string `json:"previous_hash"`
				Hash         string
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.ID == "" || entry.PreviousHash != previous {
				t.Fatalf("line %d of %v: %s (%v)", i, log, line, err)
			}
			previous = entry.Hash
		}
		run(append([]string{"admin", "audit", "verify"}, log...)...)
	}
}

// TestLongAuditExport checks that an export in several parts is complete, also
// when root has switched to another user before the second.
func TestLongAuditExport(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	const requests = 1100 // a part has 1000 entries
	for range requests {
		m.must("GET", "/databases", nil, nil)
	}
	info, err := os.Stat(m.dataDir)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := user.LookupId(strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid)))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the log", func() bool {
		out, stderr, code := m.run("", "admin", "audit", "export", "--user", owner.Username)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return strings.Count(out, "\n") > requests
	})
}

func adminCommands(t *testing.T, m *machine, suffix string) {
	t.Helper()
	run := func(args ...string) string {
		t.Helper()
		out, stderr, code := m.run("", args...)
		if code != 0 {
			t.Fatalf("%v: %d %s", args, code, stderr)
		}
		return out
	}
	refuse := func(want int, says string, args ...string) {
		t.Helper()
		if _, stderr, code := m.run("", args...); code != want || !strings.Contains(stderr, says) {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	key := createKey(t, m, "--preset", "developer")
	if suffix == "running" {
		old := m.key
		m.key = key
		m.must("GET", "/databases", nil, nil)
		var list []struct{ ID, Preview string }
		m.must("GET", "/account/api-keys", nil, &list)
		full := createKey(t, m, "--preset", "full_access")
		developer := m.key
		m.key = full
		var keys []struct{ ID, Preview, Name string }
		m.must("GET", "/account/api-keys", nil, &keys)
		refuse(2, "allow-dangerous", "admin", "key", "update", keys[0].ID)
		if status, _ := m.do("DELETE", "/buckets/bkt_absent", nil); status != http.StatusForbidden {
			t.Errorf("a key may delete before it is let: %d", status)
		}
		path := "/account/api-keys/" + keys[0].ID // of its own organization
		if status, _ := m.do("PATCH", path, map[string]any{"allow_dangerous": true}); status != http.StatusForbidden {
			t.Errorf("PATCH %s: %d", path, status)
		}
		run("admin", "key", "update", keys[0].ID, "--allow-dangerous=true")
		if status, _ := m.do("DELETE", "/buckets/bkt_absent", nil); status != http.StatusNotFound {
			t.Errorf("a key that may delete: %d", status)
		}
		run("admin", "key", "update", keys[0].ID, "--allow-dangerous=false")
		if status, _ := m.do("DELETE", "/buckets/bkt_absent", nil); status != http.StatusForbidden {
			t.Errorf("a key may delete after it was ended: %d", status)
		}
		refuse(2, "no permission that deletes", "admin", "key", "update", list[0].ID, "--allow-dangerous=true")
		run("admin", "key", "revoke", keys[0].ID, "--yes")
		m.key = developer
		refuse(2, "would end the key "+list[0].ID, "admin", "key", "revoke", list[0].ID)
		m.must("GET", "/databases", nil, nil)
		run("admin", "key", "revoke", list[0].ID, "--yes")
		if status, _ := m.do("GET", "/databases", nil); status != http.StatusUnauthorized {
			t.Errorf("the revoked key: %d", status)
		}
		m.key = old
	}
	run("admin", "org", "create", "acme "+suffix)
	if out := run("admin", "org", "list"); !strings.Contains(out, "acme "+suffix) {
		t.Errorf("organizations: %s", out)
	}
	run("admin", "project", "create", "web", "--org", "acme "+suffix)
	if out := run("admin", "project", "list", "--org", "acme "+suffix); strings.Count(out, "proj_") != 2 {
		t.Errorf("projects: %s", out)
	}
	for weak, says := range map[string]string{"sunshine1\n": "must have 12 to", "sunshine1234\n": "easy to guess"} {
		if _, stderr, code := m.run(weak, "admin", "user", "create", suffix+"@example.com"); code != 2 || !strings.Contains(stderr, "password: ") || !strings.Contains(stderr, says) {
			t.Errorf("user create with a weak password: %d %s", code, stderr)
		}
	}
	if _, stderr, code := m.run("a long enough password\n", "admin", "user", "create", suffix+"@example.com"); code != 0 {
		t.Errorf("user create: %s", stderr)
	}
	if out := run("admin", "user", "list"); !strings.Contains(out, suffix+"@example.com") || !strings.Contains(out, "owner") {
		t.Errorf("people: %s", out)
	}
	run("admin", "user", "role", suffix+"@example.com", "owner")
	run("admin", "user", "sign-out", suffix+"@example.com")
	if out := run("admin", "setup-link"); !strings.Contains(out, "/setup?token=") {
		t.Errorf("set-up link: %s", out)
	}
	if out := run("admin", "setup-link", "--email", suffix+"@example.com"); !strings.Contains(out, "/setup?token=") {
		t.Errorf("set-up link for a lost password: %s", out)
	}
	refuse(5, "no user", "admin", "setup-link", "--email", "nobody@example.com")
	if suffix == "running" {
		refuse(4, "last owner", "admin", "user", "delete", "running@example.com", "--yes")
	} else {
		refuse(2, "would remove the account of running@example.com", "admin", "user", "delete", "running@example.com")
		run("admin", "user", "delete", "running@example.com", "--yes")
	}
	refuse(2, "must be one of", "admin", "user", "role", suffix+"@example.com", "king")
	if out := run("admin", "audit", "verify"); !strings.Contains(out, "intact") {
		t.Errorf("audit: %s", out)
	}
	checkAuditExport(t, run)
	plans := filepath.Join(filepath.Dir(m.dataDir), "plans.toml")
	if err := os.WriteFile(plans, []byte("[plans.tiny]\nbuckets = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := run("admin", "org", "set-plan", "acme "+suffix, "self_hosted"); !strings.Contains(out, "self_hosted") {
		t.Errorf("set-plan: %s", out)
	}
	if out := run("admin", "org", "set-trial", "acme "+suffix, "self_hosted", "--for", "2d"); !strings.Contains(out, "on trial of self_hosted until") {
		t.Errorf("set-trial: %s", out)
	}
	if suffix == "stopped" { // the running one was started without these plans
		if out := run("admin", "org", "set-plan", "acme "+suffix, "tiny", "--config", plans); !strings.Contains(out, "plan tiny") {
			t.Errorf("set-plan: %s", out)
		}
	}
	if suffix == "running" {
		run("admin", "database", "set", "shop", "work_mem=8MB")
		refuse(2, "nothing was changed", "admin", "database", "set", "shop", "shared_buffers=much")
	} else { // unknown whether PostgreSQL starts with it
		refuse(6, "start it first", "admin", "database", "set", "shop", "shared_buffers=much")
	}
	refuse(2, "[plans.huge]", "admin", "org", "set-plan", "acme "+suffix, "huge")
	refuse(2, "--for", "admin", "org", "set-trial", "acme "+suffix, "self_hosted", "--for", "soon")
	refuse(5, "no organization", "admin", "key", "list", "--org", "nobody")
	refuse(6, "exists already", "admin", "org", "create", "acme "+suffix)
	created := run("admin", "org", "create", "json "+suffix, "--json")
	if !strings.Contains(created, `"plan":"self_hosted"`) || !strings.Contains(run("admin", "org", "list", "--json"), strings.TrimSpace(created)) {
		t.Errorf("an organization is created as %s, and listed otherwise: %s", created, run("admin", "org", "list", "--json"))
	}
	refuse(2, "preset", "admin", "key", "create", "--name", "x", "--preset", "all")
	refuse(2, "--expires", "admin", "key", "create", "--name", "x", "--preset", "developer", "--expires", "soon")
	refuse(2, "accepts 1 arg", "admin", "org", "create")
}
