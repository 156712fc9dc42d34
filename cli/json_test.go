package cli_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"holdfast/cli"
)

// jsonCommand is a command to run with --json, in the order of the table.
type jsonCommand struct {
	name string // without the program
	args string // after the name; $ID and others are replaced by ids from earlier results
	// api is the path at which the API returns the same, "" if the command
	// combines results.
	api string
	// keep is the name under which a field of the result is kept, and the field
	// if it is not the id.
	keep string
	// stdin is the command's input.
	stdin string
}

func jsonCommands() []jsonCommand {
	return []jsonCommand{
		{name: "login", args: "--with-key --profile json --url $URL", stdin: "$KEY"},
		{name: "profile list"},
		{name: "profile use", args: "json"},
		{name: "whoami"},
		{name: "logout", args: "--profile json"},

		{name: "db create", args: "shop", keep: "ID"},
		{name: "db list", api: "/databases"},
		{name: "db versions", api: "/versions"},
		{name: "db get", args: "shop", api: "/databases/$ID"},
		{name: "db env", args: "shop"},
		{name: "db url", args: "shop", api: "/databases/$ID/connection"},
		{name: "db allowlist show", args: "shop", api: "/databases/$ID/allowlist"},
		{name: "db allowlist set", args: "shop 127.0.0.1"},
		{name: "db allowlist add", args: "shop 127.0.0.2"},
		{name: "db allowlist remove", args: "shop 127.0.0.2"},
		{name: "db ssl", args: "shop", api: "/databases/$ID/ssl"},
		{name: "db rls show", args: "shop", api: "/databases/$ID/rls"},
		{name: "db rls enable", args: "shop t"},
		{name: "db rls disable", args: "shop t"},
		{name: "db rotate-password", args: "shop"},
		{name: "db role create", args: "shop reports --access write"},
		{name: "db role list", args: "shop", api: "/databases/$ID/roles"},
		{name: "db role show", args: "shop reports", api: "/databases/$ID/roles/reports"},
		{name: "db role update", args: "shop reports --access read"},
		{name: "db role rotate-password", args: "shop reports"},
		{name: "db role delete", args: "shop reports --yes"},
		{name: "db databases", args: "shop"},
		{name: "db restart", args: "shop"},
		{name: "db update", args: "shop --connection-limit 20"},
		{name: "db update", args: "shop --logical-replication on --yes"},
		{name: "db replication show", args: "shop", api: "/databases/$ID/replication"},
		{name: "db replication url", args: "shop", api: "/databases/$ID/replication"},
		{name: "db session list", args: "shop"},
		{name: "db log", args: "shop --level log"},
		{name: "db metrics", args: "shop"},

		{name: "db statement list", args: "shop"},
		{name: "db statement explain", args: "shop --sql table/**/pg_class"},
		{name: "db statement reset", args: "shop"},
		{name: "db locks", args: "shop", api: "/databases/$ID/locks"},
		{name: "db sizes", args: "shop"},
		{name: "db settings list", args: "shop", api: "/databases/$ID/settings"},
		{name: "db settings set", args: "shop work_mem=8MB"},
		{name: "db settings reset", args: "shop work_mem"},

		{name: "extension list", args: "shop", api: "/databases/$ID/extensions"},
		{name: "extension create", args: "shop bloom"},
		{name: "extension drop", args: "shop bloom --yes"},

		{name: "backup create", args: "shop --wait", keep: "BACKUP"},
		{name: "backup list", args: "shop", api: "/databases/$ID/backups"},
		{name: "backup get", args: "shop latest", api: "/databases/$ID/backups/$BACKUP"},
		{name: "backup pin", args: "shop $BACKUP"},
		{name: "backup unpin", args: "shop $BACKUP"},
		{name: "backup create", args: "shop --wait", keep: "NEWEST"},
		{name: "backup delete", args: "shop $BACKUP --yes"},
		{name: "branch create", args: "shop try"},
		{name: "branch list"},
		{name: "branch diff", args: "try"},
		{name: "branch reset", args: "try --yes"},
		{name: "branch delete", args: "try --yes"},
		{name: "backup export", args: "shop copy.dump --wait"},
		{name: "recovery status", args: "shop", api: "/databases/$ID/recovery", keep: "AT earliest_restorable_time"},
		{name: "recovery restore", args: "shop --to $AT --dry-run"},
		{name: "backup restore", args: "shop $NEWEST --wait --yes", keep: "OPERATION"},
		{name: "operation list", api: "/operations"},
		{name: "operation get", args: "$OPERATION", api: "/operations/$OPERATION"},
		{name: "recovery undo", args: "shop --wait --yes"},

		{name: "import start", args: "copy --from -", stdin: "postgres://app:secret@127.0.0.1:1/shop", keep: "IMPORT"},
		{name: "import list", api: "/imports"},
		{name: "import status", args: "$IMPORT", api: "/imports/$IMPORT"},

		{name: "webhook create", args: "pager https://hook.invalid/ --events key.*", keep: "WEBHOOK"},
		{name: "webhook list", api: "/webhooks"},
		{name: "webhook update", args: "pager --events backup.*,key.*"},
		{name: "webhook get", args: "pager", api: "/webhooks/$WEBHOOK"},
		{name: "webhook rotate-secret", args: "pager"},
		{name: "webhook ping", args: "pager", keep: "DELIVERY"},
		{name: "webhook deliveries", args: "pager"},
		{name: "webhook resend", args: "pager $DELIVERY"},
		{name: "webhook delete", args: "pager --yes"},

		{name: "bucket create", args: "files", keep: "BUCKET"},
		{name: "bucket list", api: "/buckets"},
		{name: "bucket get", args: "files", api: "/buckets/$BUCKET"},
		{name: "bucket update", args: "files --public"},
		{name: "bucket website", args: "files", api: "/buckets/$BUCKET"},
		{name: "object put", args: "- files/a/note.txt", stdin: "hello"},
		{name: "object list", args: "files", api: "/buckets/$BUCKET/objects"},
		{name: "object list", args: "files/none"},
		{name: "object get", args: "files/a/note.txt"},
		{name: "object show", args: "files/a/note.txt", api: "/buckets/$BUCKET/objects/a/note.txt"},
		{name: "object update", args: "files/a/note.txt --metadata owner=ann --tag a=b"},
		{name: "object copy", args: "files/a/note.txt files/b --no-clobber"},
		{name: "object versions", args: "files", api: "/buckets/$BUCKET/versions?limit=100"},
		{name: "object link", args: "files/a/note.txt --expires-in 1m"},
		{name: "object link", args: "--upload --form files/in/"},
		{name: "object delete", args: "files/b --yes"},
		{name: "object delete", args: "files/a/note.txt --yes"},
		{name: "bucket delete", args: "files --yes"},
		{name: "bucket create", args: "versions", keep: "BUCKET"},
		{name: "bucket update", args: "versions --versioning enabled"},
		{name: "bucket history", args: "versions", api: "/buckets/$BUCKET/restore"},
		{name: "bucket restore", args: "versions --to 0s --dry-run"},
		{name: "bucket restore", args: "versions --to 0s --wait --yes"},
		{name: "bucket delete", args: "versions --yes"},

		{name: "account usage", api: "/account/usage"},
		{name: "account limits", api: "/account/limits"},
		{name: "account billing", api: "/account/billing"},
		{name: "offsite status", api: "/account/offsite"},
		{name: "project create", args: "lab"},
		{name: "project list", api: "/projects"},
		{name: "project rename", args: "lab trial"},
		{name: "project delete", args: "trial --yes"},
		{name: "user invite", args: "vic@example.com"},
		{name: "user list", api: "/users"},
		{name: "user link", args: "vic@example.com"},
		{name: "user role", args: "vic@example.com viewer"},
		{name: "session list", api: "/sessions"},
		{name: "session end-all", args: "vic@example.com"},
		{name: "user delete", args: "vic@example.com --yes"},
		{name: "key create", args: "ci --preset read_only --expires 90d", keep: "TOKEN key.id"},
		{name: "key list", api: "/account/api-keys"},
		{name: "key get", args: "$TOKEN", api: "/account/api-keys/$TOKEN"},
		{name: "key update", args: "$TOKEN --name robot"},
		{name: "key revoke", args: "$TOKEN --yes"},
		{name: "key s3", api: "/account/storage-credentials"},
		{name: "account audit", args: "--limit 3", api: "/account/audit-logs?limit=3"},
		{name: "agent status", api: "/agent/status"},
		{name: "agent recommendations", api: "/agent/recommendations"},
		{name: "db delete", args: "shop --yes"},
		{name: "trash list", api: "/trash/databases"},
		{name: "trash buckets", api: "/trash/buckets"},
		{name: "trash objects", api: "/trash/objects"},
		{name: "trash restore", args: "$ID"},
		{name: "db delete", args: "shop --yes"},
		{name: "trash purge", args: "$ID --yes"},
		{name: "trash empty", args: "--yes"},
	}
}

// withoutEnvelope returns the commands that accept --json but do not call the
// API, that exec another program, or that need an operation that is under way, a browser, or a newer PostgreSQL.
func withoutEnvelope() []string {
	return []string{
		"api", "doctor", "account audit export", "events", "backup verify", "backup extract", "db psql", "import cancel", "import cutover", "operation cancel", "session end",
		"db session cancel", "db session terminate", "db replication drop-slot", "db upgrade",
		"offsite init", "offsite verify", "offsite prune", "offsite rotate", "recover",
	}
}

// TestJSON runs every command with --json: each prints the API's envelope, with
// the fields that the API returns.
func TestJSON(t *testing.T) {
	t.Parallel()
	commands := jsonCommands()
	for _, name := range commandsWithJSON(cli.NewRoot()) {
		named := func(c jsonCommand) bool { return c.name == name }
		if !slices.Contains(withoutEnvelope(), name) && !strings.HasPrefix(name, "admin ") && !slices.ContainsFunc(commands, named) {
			t.Errorf("%s takes --json, and is not run here", name)
		}
	}
	m := newMachine(t)
	m.start("--backup-interval", "0")
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	home := t.TempDir()
	known := map[string]string{"URL": strings.TrimSuffix(m.api, "/v1"), "KEY": m.key}
	fill := func(text string) string { return os.Expand(text, func(name string) string { return known[name] }) }
	run := func(stdin string, args ...string) (answer map[string]any) {
		t.Helper()
		cmd := exec.Command(program, args...)
		var out, stderr bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = home, strings.NewReader(stdin), &out, &stderr
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"),
			"HOLDFAST_URL="+known["URL"], "HOLDFAST_API_KEY="+known["KEY"])
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v %s", args, err, stderr.String())
		}
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			t.Fatalf("%s: %v: %.200q", args, err, out.String())
		}
		return answer
	}
	for _, c := range commands {
		if c.name == "db rls enable" {
			m.createTable(known["ID"])
		}
		got := run(fill(c.stdin), append(append(strings.Fields(c.name), strings.Fields(fill(c.args))...), "--json")...)
		meta, isObject := got["meta"].(map[string]any)
		if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, []string{"data", "meta"}) || !isObject || got["data"] == nil {
			t.Errorf("%s: its answer has %v", c.name, keys)
		}
		if id, has := meta["request_id"]; !has || id != nil && !strings.HasPrefix(fmt.Sprint(id), "req_") {
			t.Errorf("%s: the id of the request is %v", c.name, id)
		}
		if name, field, _ := strings.Cut(c.keep, " "); name != "" {
			kept := got["data"]
			for part := range strings.SplitSeq(cmp.Or(field, "id"), ".") {
				kept = kept.(map[string]any)[part]
			}
			known[name] = fmt.Sprint(kept)
		}
		if c.api == "" {
			continue
		}
		want := run("", "api", "GET", fill(c.api))
		if got, want := shapeOf(got), shapeOf(want); got != want {
			t.Errorf("%s has\n%s\nand the API answers\n%s", c.name, got, want)
		}
	}
}

// createTable creates a table t in a database.
func (m *machine) createTable(id string) {
	m.t.Helper()
	var c struct {
		ConnectionURL string `json:"connection_url"`
	}
	m.must("GET", "/databases/"+id+"/connection", nil, &c)
	if out, err := exec.Command("psql", c.ConnectionURL, "-qc", "create table t (n int)").CombinedOutput(); err != nil {
		m.t.Fatalf("%v %s", err, out)
	}
}

// shapeOf lists the fields of a response's meta and of its data or, for a list,
// of its first record.
func shapeOf(answer map[string]any) string {
	data, of := answer["data"], "data"
	if list, ok := data.([]any); ok {
		of = "list"
		if data = nil; len(list) > 0 {
			data = list[0]
		}
	}
	record, _ := data.(map[string]any)
	meta, _ := answer["meta"].(map[string]any)
	return fmt.Sprintf("%s %v meta %v", of, slices.Sorted(maps.Keys(record)), slices.Sorted(maps.Keys(meta)))
}

// commandsWithJSON lists the commands that accept --json, without the program's
// name.
func commandsWithJSON(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, commandsWithJSON(sub)...)
	}
	takes := cmd.Flags().Lookup("json") != nil || cmd.InheritedFlags().Lookup("json") != nil
	if takes && !cmd.HasSubCommands() {
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		names = append(names, name)
	}
	return names
}
