package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// door is a request and everything that it needs according to README.md. The list is written by hand: it is compared
// with the gate's behaviour, not derived from it.
type door struct {
	name, method, path, body string
	header                   map[string]string
	scopes                   []model.Scope
	toggle                   bool
	budgets                  []model.RateClass
}

func doors() []door {
	const db, bucket, backup = "/databases/" + nobody, "/buckets/bucket_00000000000000000000000000", "/backups/bkp_x"
	restoreNew := []model.Scope{model.ScopeBackupRestore, model.ScopeDatabaseCreate}
	restoreNewBudgets := []model.RateClass{model.RateRestore, model.RateCreateDatabase}
	all := []door{
		{
			name: "restoreBackup in place", method: "POST", path: db + backup + "/restore", body: `{"mode":"in_place"}`,
			scopes: []model.Scope{model.ScopeBackupRestore}, budgets: []model.RateClass{model.RateRestore},
		},
		{
			name: "restoreBackup without a body", method: "POST", path: db + backup + "/restore",
			scopes: []model.Scope{model.ScopeBackupRestore}, budgets: []model.RateClass{model.RateRestore},
		},
		{
			name: "restoreBackup into a new database", method: "POST", path: db + backup + "/restore", body: `{"mode":"new","name":"n"}`,
			scopes: restoreNew, budgets: restoreNewBudgets,
		},
		{
			name: "restoreBackup spelled with escapes", method: "POST", path: db + backup + "/restore", body: `{"m\u006fde":"ne\u0077","name":"n"}`,
			scopes: restoreNew, budgets: restoreNewBudgets,
		},
		{
			name: "requestRestore in place", method: "POST", path: db + "/recovery/restore-request", body: `{"target_lsn":"0/1"}`,
			scopes: []model.Scope{model.ScopeBackupRestore}, budgets: []model.RateClass{model.RateRestore},
		},
		{
			name: "requestRestore into a new database", method: "POST", path: db + "/recovery/restore-request", body: `{"target_lsn":"0/1","mode":"new","name":"n"}`,
			scopes: restoreNew, budgets: restoreNewBudgets,
		},
		{
			name: "requestRestore into a new database, dry", method: "POST", path: db + "/recovery/restore-request",
			body: `{"target_lsn":"0/1","mode":"new","name":"n","dry_run":true}`, scopes: restoreNew, budgets: restoreNewBudgets,
		},
		{
			name: "createImport", method: "POST", path: "/imports", body: `{"project":"proj_none","name":"n","source_url":"postgres://u:p@127.0.0.1:1/d"}`,
			scopes: []model.Scope{model.ScopeDatabaseCreate}, budgets: []model.RateClass{model.RateImport, model.RateCreateDatabase},
		},
		{
			name: "undoRestore", method: "POST", path: db + "/recovery/undo",
			scopes: []model.Scope{model.ScopeBackupRestore}, budgets: []model.RateClass{model.RateRestore},
		},
		{
			name: "createDatabase", method: "POST", path: "/databases", body: `{"project":"proj_none","name":"n"}`,
			scopes: []model.Scope{model.ScopeDatabaseCreate}, budgets: []model.RateClass{model.RateCreateDatabase},
		},
		{
			name: "createBackup", method: "POST", path: db + "/backups",
			scopes: []model.Scope{model.ScopeBackupCreate}, budgets: []model.RateClass{model.RateCreateBackup},
		},
		{
			name: "createBucket", method: "POST", path: "/buckets", body: `{"project":"proj_none","name":"nnn"}`,
			scopes: []model.Scope{model.ScopeStorageCreate}, budgets: []model.RateClass{model.RateCreateBucket},
		},
		{name: "deleteObjectByQuery", method: "DELETE", path: bucket + "/objects?key=k", scopes: []model.Scope{model.ScopeStorageDelete}, toggle: true},
		{name: "updateBucket", method: "PATCH", path: bucket, body: `{"public":true}`, scopes: []model.Scope{model.ScopeStorageUpdate}},
		{
			name: "restoreBucket, dry", method: "POST", path: bucket + "/restore", body: `{"target_time":"2026-01-31T12:00:00Z","dry_run":true}`,
			scopes: []model.Scope{model.ScopeStorageUpdate}, budgets: []model.RateClass{model.RateRestore},
		},
		{name: "createUploadLink", method: "POST", path: bucket + "/upload-links", body: `{"key":"k"}`, scopes: []model.Scope{model.ScopeStorageCreate}},
		{name: "createDownloadLink", method: "POST", path: bucket + "/download-links", body: `{"key":"k"}`, scopes: []model.Scope{model.ScopeStorageRead}},
		{name: "updateObject", method: "PATCH", path: bucket + "/objects/k", body: `{"tags":{}}`, scopes: []model.Scope{model.ScopeStorageUpdate}},
		{
			name: "copyObject", method: "POST", path: bucket + "/copy-object", body: `{"key":"k","source_key":"s"}`,
			scopes: []model.Scope{model.ScopeStorageCreate, model.ScopeStorageRead},
		},
		{name: "uploadObject", method: "POST", path: bucket + "/objects?key=k", body: "bytes", scopes: []model.Scope{model.ScopeStorageCreate}},
		{name: "createExport", method: "POST", path: db + "/export", scopes: []model.Scope{model.ScopeBackupCreate}, budgets: []model.RateClass{model.RateCreateBackup}},
		{name: "pinBackup", method: "POST", path: db + backup + "/pin", scopes: []model.Scope{model.ScopeBackupCreate}},
		{name: "setDatabaseRLS", method: "POST", path: db + "/rls", body: `{"table":"t","enabled":true}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "resetStatements", method: "POST", path: db + "/statements/reset", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "explainStatement", method: "POST", path: db + "/statements/explain", body: `{"statement":"select 1"}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{
			name: "createBranch", method: "POST", path: db + "/branches", body: `{"name":"n"}`,
			scopes: []model.Scope{model.ScopeBackupRestore, model.ScopeDatabaseCreate}, budgets: []model.RateClass{model.RateCreateDatabase},
		},
		{
			name: "resetBranch", method: "POST", path: db + "/branch/reset",
			scopes: []model.Scope{model.ScopeBackupRestore}, budgets: []model.RateClass{model.RateRestore},
		},
		{name: "updateDatabaseSettings", method: "PATCH", path: db + "/settings", body: `{"settings":{"jit":"off"}}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "setExtension", method: "POST", path: db + "/extensions", body: `{"name":"hstore"}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "updateDatabase", method: "PATCH", path: db, body: `{"connection_limit":null}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "dropReplicationSlot", method: "DELETE", path: db + "/replication/slots/s", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "cancelDatabaseSession", method: "POST", path: db + "/sessions/1-1/cancel", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "terminateDatabaseSession", method: "POST", path: db + "/sessions/1-1/terminate", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "createDatabaseRole", method: "POST", path: db + "/roles", body: `{"name":"r","access":"read"}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "updateDatabaseRole", method: "PATCH", path: db + "/roles/r", body: `{"access":"read"}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "deleteDatabaseRole", method: "DELETE", path: db + "/roles/r", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "rotateDatabaseRolePassword", method: "POST", path: db + "/roles/r/rotate-password", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "deleteExtension", method: "DELETE", path: db + "/extensions/hstore", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "replaceDatabaseAllowlist", method: "PUT", path: db + "/allowlist", body: `{"entries":[]}`, scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "restartDatabase", method: "POST", path: db + "/restart", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{
			name: "upgradeDatabase", method: "POST", path: db + "/upgrade", body: `{"version":"18","dry_run":true}`,
			scopes: []model.Scope{model.ScopeDatabaseUpdate}, budgets: []model.RateClass{model.RateRestore},
		},
		{name: "rotateDatabasePassword", method: "POST", path: db + "/rotate-password", scopes: []model.Scope{model.ScopeDatabaseUpdate}},
		{name: "deleteDatabase", method: "DELETE", path: db, scopes: []model.Scope{model.ScopeDatabaseDelete}, toggle: true},
		{name: "deleteBackup", method: "DELETE", path: db + backup, scopes: []model.Scope{model.ScopeBackupDelete}, toggle: true},
		{name: "deleteBucket", method: "DELETE", path: bucket, scopes: []model.Scope{model.ScopeStorageDelete}, toggle: true},
		{name: "deleteBucket with force", method: "DELETE", path: bucket + "?force=true", scopes: []model.Scope{model.ScopeStorageDelete}, toggle: true},
		{
			name: "createWebhook", method: "POST", path: "/webhooks", body: `{"name":"h","url":"https://hook.invalid/","events":["*"]}`,
			scopes: []model.Scope{model.ScopeWebhookManage},
		},
		{name: "updateWebhook", method: "PATCH", path: "/webhooks/wh_x", body: `{"enabled":true}`, scopes: []model.Scope{model.ScopeWebhookManage}},
		{name: "deleteWebhook", method: "DELETE", path: "/webhooks/wh_x", scopes: []model.Scope{model.ScopeWebhookManage}},
		{name: "rotateWebhookSecret", method: "POST", path: "/webhooks/wh_x/rotate-secret", scopes: []model.Scope{model.ScopeWebhookManage}},
		{name: "pingWebhook", method: "POST", path: "/webhooks/wh_x/ping", scopes: []model.Scope{model.ScopeWebhookManage}},
		{name: "resendWebhookDelivery", method: "POST", path: "/webhooks/wh_x/deliveries/dlv_x/resend", scopes: []model.Scope{model.ScopeWebhookManage}},
		{name: "cutOverImport", method: "POST", path: "/imports/imp_x/cutover", scopes: []model.Scope{model.ScopeDatabaseCreate}},
		{name: "cancelOperation", method: "POST", path: "/operations/op_x/cancel", scopes: []model.Scope{model.ScopeDatabaseRead}},
		{name: "deleteObject", method: "DELETE", path: bucket + "/objects/k", scopes: []model.Scope{model.ScopeStorageDelete}, toggle: true},
	}
	all = append(all, accountDoors()...)
	for scope, paths := range map[model.Scope][]string{
		model.ScopeDatabaseRead: {
			"/databases", "/versions", db, db + "/branches", db + "/branch/diff", db + "/connection", db + "/metrics", db + "/sessions", db + "/roles", db + "/roles/r", db + "/databases", db + "/ssl", db + "/allowlist", db + "/rls", db + "/settings", db + "/statements", db + "/locks", db + "/relations", db + "/extensions", db + "/replication", "/imports", "/imports/imp_x", "/operations", "/operations/op_x", "/operations/op_x/events", "/events",
		},
		model.ScopeDatabaseUpdate: {db + "/log"},
		model.ScopeBackupList:     {db + "/backups", db + backup, db + "/recovery"},
		model.ScopeBackupDownload: {db + "/export"},
		model.ScopeStorageRead:    {"/buckets", bucket, bucket + "/objects", bucket + "/objects/k", bucket + "/versions", bucket + "/restore", "/account/storage-credentials"},
		model.ScopeAccountRead: {
			"/account/usage", "/account/limits", "/account/offsite", "/account/api-keys", "/account/audit-logs", "/account/audit-logs/export", "/agent/status", "/agent/recommendations",
			"/projects", "/projects/proj_x", "/account/api-keys/key_x",
		},
		model.ScopeBillingRead:   {"/account/billing"},
		model.ScopeTrashManage:   {"/trash/databases", "/trash/buckets", "/trash/objects"},
		model.ScopeTeamRead:      {"/users", "/users/user_x"},
		model.ScopeWebhookManage: {"/webhooks", "/webhooks/wh_x", "/webhooks/wh_x/deliveries"},
	} {
		for _, path := range paths {
			all = append(all, door{name: "GET " + path, method: "GET", path: path, scopes: []model.Scope{scope}})
		}
	}
	return all
}

// accountDoors are the doors to projects, keys, people and the trash.
func accountDoors() []door {
	project, key := []model.Scope{model.ScopeProjectManage}, []model.Scope{model.ScopeKeyManage}
	team, session := []model.Scope{model.ScopeTeamManage}, []model.Scope{model.ScopeSessionManage}
	trash, purge := []model.Scope{model.ScopeTrashManage}, []model.Scope{model.ScopeTrashDelete}
	return []door{
		{name: "createProject", method: "POST", path: "/projects", body: `{"name":"n"}`, scopes: project},
		{name: "updateProject", method: "PATCH", path: "/projects/proj_x", body: `{"name":"n"}`, scopes: project},
		{name: "deleteProject", method: "DELETE", path: "/projects/proj_x", scopes: project},
		{
			name: "createKey", method: "POST", path: "/account/api-keys", body: `{"name":"n","scopes":["key:manage"]}`,
			scopes: key, budgets: []model.RateClass{model.RateCreateKey},
		},
		{name: "updateKey", method: "PATCH", path: "/account/api-keys/key_x", body: `{"name":"n"}`, scopes: key},
		{name: "revokeKey", method: "DELETE", path: "/account/api-keys/key_x", scopes: key},
		// Of a valid invitation the engine also asks for everything that a viewer has.
		{name: "inviteUser", method: "POST", path: "/users", body: `{"email":"nobody","role":"viewer"}`, scopes: team, budgets: []model.RateClass{model.RateInvite}},
		{name: "updateUser", method: "PATCH", path: "/users/user_x", body: `{"role":"viewer"}`, scopes: team},
		{name: "deleteUser", method: "DELETE", path: "/users/user_x", scopes: team},
		{name: "createSetupLink", method: "POST", path: "/users/user_x/setup-link", scopes: team, budgets: []model.RateClass{model.RateInvite}},
		{name: "listUserSessions", method: "GET", path: "/sessions", scopes: session},
		{name: "endUserSession", method: "DELETE", path: "/sessions/sess_x", scopes: session},
		{name: "restoreTrashedDatabase", method: "POST", path: "/trash/databases/none/restore", scopes: trash},
		{name: "restoreTrashedBucket", method: "POST", path: "/trash/buckets/none/restore", scopes: trash},
		{name: "restoreTrashedObject", method: "POST", path: "/trash/objects/none/restore", scopes: trash},
		{name: "purgeTrashedDatabase", method: "DELETE", path: "/trash/databases/none", scopes: purge, toggle: true},
		{name: "purgeTrashedBucket", method: "DELETE", path: "/trash/buckets/none", scopes: purge, toggle: true},
		{name: "purgeTrashedObject", method: "DELETE", path: "/trash/objects/none", scopes: purge, toggle: true},
		{name: "emptyTrash", method: "DELETE", path: "/trash", scopes: purge, toggle: true},
		{name: "endUserSessions", method: "DELETE", path: "/users/user_x/sessions", scopes: session},
	}
}

// TestDoors sends every request with exactly what it needs, which is admitted, and with each part of that missing,
// which is rejected before any lookup.
func TestDoors(t *testing.T) {
	w := open(t, onceEach)
	routed := map[string]bool{}
	for i, d := range doors() {
		routed[w.operationAt(t, d)] = true
		w.org = w.tenant(t, fmt.Sprint("door-", i)) // a new key takes the longer the more its organization has had
		t.Run(d.name, func(t *testing.T) { w.testDoor(t, d) })
	}
	for _, op := range model.Operations() {
		if op.Scope != "" && !routed[op.Name] {
			t.Errorf("%s is not walked", op.Name)
		}
	}
}

// operationAt returns the name of a door's operation.
func (w *world) operationAt(t *testing.T, d door) string {
	t.Helper()
	req, err := http.NewRequest(d.method, w.server.URL+Prefix+d.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	op := w.doc.CheckRequest(t, req, nil)
	if op == nil {
		t.Fatalf("%s leads to no operation", d.name)
	}
	return strings.TrimSuffix(op.OperationID, "ByQuery")
}

// briefKey creates a key that is revoked after the test: an organization cannot have as many as all doors take.
func (w *world) briefKey(t *testing.T, in access.NewKey) string {
	t.Helper()
	key := w.key(t, w.org.organization, in)
	t.Cleanup(func() { w.revoke(t, key) })
	return key
}

func (w *world) testDoor(t *testing.T, d door) {
	ask := func(in access.NewKey, path string) reply {
		request := request{method: d.method, path: path, key: w.briefKey(t, in), body: d.body, header: d.header}
		return w.do(t, request)
	}
	wide := slices.Clone(model.Scopes())
	if got := ask(access.NewKey{Scopes: d.scopes, AllowDangerous: d.toggle}, d.path); got.status == 401 || got.status == 403 || got.status == 429 {
		t.Errorf("with exactly what it needs: %d %s", got.status, got.msg)
	}
	for _, missing := range d.scopes {
		rest := slices.DeleteFunc(slices.Clone(wide), func(s model.Scope) bool { return s == missing })
		for _, path := range []string{d.path, malformed(d.path)} {
			got := ask(access.NewKey{Scopes: rest, AllowDangerous: true}, path)
			if got.status != 403 || got.code != string(model.CodeInsufficientScope) || !strings.Contains(got.msg, string(missing)) {
				t.Errorf("%s without %s: %d %s %s", path, missing, got.status, got.code, got.msg)
			}
		}
	}
	if got := ask(access.NewKey{Scopes: wide}, malformed(d.path)); (got.code == string(model.CodeDangerousNotAllowed)) != d.toggle {
		t.Errorf("with the toggle off: %d %s", got.status, got.msg)
	}
	description := w.described(t, d)
	for _, scope := range d.scopes {
		if !strings.Contains(description, "`"+string(scope)+"`") {
			t.Errorf("the description does not name %s: %s", scope, description)
		}
	}
	for _, class := range d.budgets {
		if !strings.Contains(description, "`"+string(class)+"`") {
			t.Errorf("the description does not name the budget %s: %s", class, description)
		}
	}
	w.testBudgets(t, d)
}

func (w *world) described(t *testing.T, d door) string {
	t.Helper()
	req, err := http.NewRequest(d.method, w.server.URL+Prefix+d.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.doc.CheckRequest(t, req, nil).Description
}

// probes are requests that draw on one budget, or name it if it is used up.
func probes() map[model.RateClass]request {
	const db = "/databases/" + nobody
	return map[model.RateClass]request{
		model.RateCreateDatabase: {method: "POST", path: "/databases?nonsense=1"},
		model.RateCreateBackup:   {method: "POST", path: db + "/backups?nonsense=1"},
		model.RateRestore:        {method: "POST", path: db + "/recovery/undo?nonsense=1"},
		model.RateCreateBucket:   {method: "POST", path: "/buckets?nonsense=1"},
		model.RateImport:         {method: "POST", path: "/imports?nonsense=1"},
		model.RateCreateKey:      {method: "POST", path: "/account/api-keys?nonsense=1"},
		model.RateInvite:         {method: "POST", path: "/users?nonsense=1"},
	}
}

// testBudgets checks that the request draws on each of its budgets and on no other.
func (w *world) testBudgets(t *testing.T, d door) {
	t.Helper()
	for _, class := range model.RateClasses() {
		key := w.briefKey(t, access.NewKey{Preset: model.PresetFullAccess, AllowDangerous: true})
		if got := w.do(t, request{method: d.method, path: malformed(d.path), key: key, body: d.body}); got.status != 422 {
			t.Fatalf("malformed: %d %s", got.status, got.msg)
		}
		probe := probes()[class]
		probe.key = key
		got := w.do(t, probe)
		if spent := got.status == 429 && strings.Contains(got.msg, " of "+string(class)+" "); spent != slices.Contains(d.budgets, class) {
			t.Errorf("the budget %s afterwards: %d %s", class, got.status, got.msg)
		}
	}
}

// TestBudgetsAreDrawnTogether uses up one of two budgets: a request that needs both is rejected and draws on
// neither.
func TestBudgetsAreDrawnTogether(t *testing.T) {
	w := open(t, onceEach)
	ask := func(class model.RateClass) reply {
		in := probes()[class]
		in.key = w.org.developer
		return w.do(t, in)
	}
	ask(model.RateCreateDatabase)
	intoNew := request{
		method: "POST", path: "/databases/" + nobody + "/backups/bkp_x/restore", key: w.org.developer, body: `{"mode":"new","name":"n"}`,
	}
	if got := w.do(t, intoNew); got.status != 429 || !strings.Contains(got.msg, "create_database") || got.header.Get("Retry-After") == "" {
		t.Errorf("a restore into a new database: %d %s", got.status, got.msg)
	}
	if got := ask(model.RateRestore); got.status != 422 {
		t.Errorf("the refused restore drew on the other budget: %d %s", got.status, got.msg)
	}
}

// onceEach lets a key draw on each budget once.
func onceEach(c *core.Config) {
	for _, class := range model.RateClasses() {
		c.Rates[class] = core.Rate{Limit: 1, Window: time.Hour}
	}
}

// TestModeInAnyForm sends values that one parser might take for mode new and another might not.
func TestModeInAnyForm(t *testing.T) {
	w := open(t)
	key := w.key(t, w.org.organization, access.NewKey{Scopes: []model.Scope{model.ScopeBackupRestore}})
	for _, body := range []string{
		`{"mode":"in_place","mode":"new","name":"n"}`, `{"mode":"new","mode":"in_place","name":"n"}`, `{"Mode":"new","name":"n"}`,
		`{"mode":["new"],"name":"n"}`, `{"mode":{"mode":"new"},"name":"n"}`, `[{"mode":"new","name":"n"}]`, `{"mode":"new","name":"n"}{}`,
		"\ufeff" + `{"mode":"new","name":"n"}`, `{"mode":"NEW","name":"n"}`, `{"mode":"new ","name":"n"}`, `{"mode":null,"name":"n"}`,
		`{"mode":"new","name":"n"`, `{"mode":"n\u0000ew","name":"n"}`, `{"\u006dode":"new","name":"n"}`,
	} {
		for _, path := range []string{"/databases/" + nobody + "/backups/bkp_x/restore", "/databases/" + nobody + "/recovery/restore-request"} {
			got := w.do(t, request{method: "POST", path: path, key: key, body: body})
			if got.status != 422 && got.code != string(model.CodeInsufficientScope) {
				t.Errorf("%s %s: %d %s", path, body, got.status, got.msg)
			}
		}
	}
}

// TestUploadsGrantNoReading stores an object with a key that may not read: the response has no signed URL, which
// would show what others store there later.
func TestUploadsGrantNoReading(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "box")
	for scope, want := range map[model.Scope]bool{model.ScopeStorageUpdate: false, model.ScopeStorageRead: true} {
		key := w.key(t, w.org.organization, access.NewKey{Scopes: []model.Scope{model.ScopeStorageCreate, scope}})
		for _, once := range []string{"a", "a", "b"} {
			got := get[wire.Object](t, w.do(t, request{
				method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: key, body: "x", header: map[string]string{gate.IdempotencyHeader: once},
			}))
			if (got.DownloadURL != nil) != want {
				t.Errorf("with storage:create and %s: download_url %q", scope, text(got.DownloadURL))
			}
		}
	}
}

// TestChangesGrantNoReading changes an object with a key that may not read.
func TestChangesGrantNoReading(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "box")
	o := w.put(t, bucket.ID, "k", "secret")
	for _, want := range []bool{false, true} {
		scopes := []model.Scope{model.ScopeStorageUpdate}
		if want {
			scopes = append(scopes, model.ScopeStorageRead)
		}
		key := w.key(t, w.org.organization, access.NewKey{Scopes: scopes})
		for _, query := range []string{"", "?version_id=" + o.VersionID} {
			got := get[wire.Object](t, w.do(t, request{method: "PATCH", path: "/buckets/" + bucket.ID + "/objects/k" + query, key: key, body: `{}`}))
			if (got.DownloadURL != nil) != want {
				t.Errorf("PATCH%s with %v: download_url %q", query, scopes, text(got.DownloadURL))
			}
		}
	}
}
