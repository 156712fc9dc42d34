package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestContract sends requests for every operation with every fault they can have. Each request also has all the
// faults that come later in the order of checks, which tests the order. world.do compares every response with the
// description, and the test with its audit entry.
func TestContract(t *testing.T) {
	c := newContract(t)
	for i, r := range (&handlers{}).routes() {
		if i%40 == 0 { // a rejected key has 60 audit entries a minute
			c.rejectedKeys(t)
		}
		op := model.OperationFor(r.action)
		t.Run(op.Name+r.variant, func(t *testing.T) {
			for _, f := range c.faults(r, op) {
				t.Run(f.name, func(t *testing.T) { c.holds(t, r, f) })
			}
		})
	}
}

// contract is a world in which every request is possible.
type contract struct {
	*world
	ids map[string]string // existing ids, by the name of their parameter
	// keys that are rejected, and one that has used up all its budgets
	revoked, expired, spent string
	brief                   string // a key that is valid for an hour
	nobodys                 int    // requests without a valid key so far
}

// fault is a request that must be rejected.
type fault struct {
	name   string
	in     request
	status int
	code   model.Code
	// log is the organization whose audit log has the request.
	log     string
	outcome model.Outcome
	says    string // a part of the message
	// spends is the number of preceding requests: if a budget were drawn on first, it would be used up.
	spends int
}

// rateLimit is the number of requests in a budget.
const rateLimit = 100

// small is the organization's final plan: all its limits are reached.
const small = "small"

func newContract(t *testing.T) *contract {
	plan, err := model.NewPlan(small, map[string]int64{
		"databases": 1, "buckets": 1, "objects": 1, "storage_bytes": 1, "backup_bytes": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, func(c *core.Config) {
		c.Plans = map[string]model.Plan{small: plan}
		for _, class := range model.RateClasses() {
			c.Rates[class] = core.Rate{Limit: rateLimit, Window: 1000 * time.Hour} // nothing is refilled meanwhile
		}
	})
	c := &contract{world: w}
	c.brief = w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly, ExpiresIn: time.Hour})
	c.spend(t)
	c.furnish(t)
	call := &model.Call{Operation: model.Operation{Action: model.ActionPlanSet}, Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization}
	if _, err := w.engine.Access.OrganizationSetPlan(call, small); err != nil {
		t.Fatal(err)
	}
	return c
}

// rejectedKeys makes new keys that are rejected.
func (c *contract) rejectedKeys(t *testing.T) {
	c.revoked = c.key(t, c.org.organization, access.NewKey{Preset: model.PresetFullAccess})
	c.revoke(t, c.revoked)
	c.expired = c.key(t, c.org.organization, access.NewKey{Preset: model.PresetFullAccess, ExpiresIn: time.Nanosecond})
}

// spend uses up every budget of a key.
func (c *contract) spend(t *testing.T) {
	c.spent = c.key(t, c.org.organization, access.NewKey{Preset: model.PresetFullAccess, AllowDangerous: true})
	spent := map[model.RateClass]bool{}
	routes := (&handlers{}).routes()
	// Requests that draw on several budgets come first: if one of those were used up, the others would not be drawn
	// on.
	slices.SortStableFunc(routes, func(a, b route) int {
		return cmp.Compare(len(model.OperationFor(b.action).Acts()), len(model.OperationFor(a.action).Acts()))
	})
	for _, r := range routes {
		op := model.OperationFor(r.action)
		if op.Rate == model.RateNone || spent[op.Rate] {
			continue
		}
		path := strings.NewReplacer("{id}", nobody, "{backupId}", "bkp_x").Replace(r.path)
		for range rateLimit {
			c.do(t, request{method: r.method, path: path + "?nonsense=1", key: c.spent})
		}
		for _, act := range op.Acts() {
			spent[act.Rate] = true
		}
	}
	if len(spent) != len(model.RateClasses()) {
		t.Fatalf("only %v are spent", spent)
	}
}

// furnish creates one of everything.
func (c *contract) furnish(t *testing.T) {
	db := c.createDatabase(t, `{"project":"`+c.org.project+`","name":"taken"}`)
	post := func(path, body string) request {
		return request{method: "POST", path: path, key: c.org.full, body: body, contentType: "application/json"}
	}
	b := get[wire.Backup](t, c.do(t, post("/databases/"+db.ID+"/backups", "")))
	testenv.Eventually(t, "the backup", func() bool {
		b = get[wire.Backup](t, c.do(t, request{method: "GET", path: "/databases/" + db.ID + "/backups/" + b.ID, key: c.org.full}))
		return b.Status == wire.BackupCompleted
	})
	get[wire.Backup](t, c.do(t, post("/databases/"+db.ID+"/backups/"+b.ID+"/pin", "")))
	get[wire.DatabaseRoleSecret](t, c.do(t, post("/databases/"+db.ID+"/roles", `{"name":"taken","access":"read"}`)))
	i := get[wire.Import](t, c.do(t, post("/imports", `{"project":"`+c.org.project+`","name":"never","source_url":"postgres://u:p@127.0.0.1:1/d"}`)))
	bucket := c.bucket(t, "taken")
	get[wire.Object](t, c.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: c.org.full, body: "bytes"}))
	spare := get[wire.CreatedKey](t, c.do(t, post("/account/api-keys", `{"name":"spare","preset":"read_only"}`)))
	eve := get[wire.InvitedUser](t, c.do(t, post("/users", `{"email":"viewer@example.com","role":"viewer"}`)))
	ops := get[[]wire.Operation](t, c.do(t, request{method: "GET", path: "/operations?type=backup&database_id=" + db.ID, key: c.org.full}))
	hook := get[wire.WebhookSecret](t, c.do(t, post("/webhooks", `{"name":"taken","url":"https://hook.invalid/","events":["key.*"]}`)))
	delivery := get[wire.Delivery](t, c.do(t, post("/webhooks/"+hook.ID+"/ping", "")))
	c.ids = map[string]string{"webhookId": hook.ID, "deliveryId": delivery.ID, "operationId": ops[0].ID, "lsn": *b.StopLSN, "db": db.ID, "backupId": b.ID, "importId": i.ID, "bucket": bucket.ID, "key": "k", "keyId": spare.Key.ID, "userId": eve.User.ID}
}

// path fills in the parameters of a route with existing or missing ids.
func (c *contract) path(r route, there bool) string {
	id, backup, imported, key, op := nobody, "bkp_x", "imp_x", "none", "op_x"
	if strings.HasPrefix(r.path, "/buckets/") {
		id = "bucket_00000000000000000000000000"
	}
	if there {
		id, backup, imported, key, op = c.ids["db"], c.ids["backupId"], c.ids["importId"], c.ids["key"], c.ids["operationId"]
		if strings.HasPrefix(r.path, "/buckets/") {
			id = c.ids["bucket"]
		}
	}
	path := strings.NewReplacer("{id}", id, "{backupId}", backup, "{importId}", imported, "{key}", key, "{operationId}", op).Replace(r.path)
	if there {
		path = strings.NewReplacer("{projectId}", c.org.project, "{keyId}", c.ids["keyId"], "{userId}", c.ids["userId"], "{webhookId}", c.ids["webhookId"], "{deliveryId}", c.ids["deliveryId"]).Replace(path)
	}
	path = pathOf(route{path: path})
	if r.path == "/buckets/{id}/objects" && r.method != http.MethodGet {
		path += "?key=" + key
	}
	return path
}

// malformed adds a query that no operation accepts to a path.
func malformed(path string) string {
	if strings.Contains(path, "?") {
		return path + "&nonsense=1"
	}
	return path + "?nonsense=1"
}

// faults returns all possible faults of a route's requests.
func (c *contract) faults(r route, op model.Operation) []fault {
	nowhere := malformed(c.path(r, false))
	ask := func(path, key, body string) request {
		in := request{method: r.method, path: path, key: key, body: body}
		if r.action != model.ActionObjectUpload && body != "" {
			in.contentType = "application/json"
		}
		return in
	}
	var all []fault
	denied := func(name string, in request, status int, code model.Code, log, says string) {
		all = append(all, fault{name: name, in: in, status: status, code: code, log: log, outcome: model.OutcomeDenied, says: says})
	}
	wrong := func(name string, in request, status int, code model.Code, log string) {
		all = append(all, fault{name: name, in: in, status: status, code: code, log: log, outcome: model.OutcomeError})
	}
	ours := c.org.organization
	if op.Scope != "" {
		denied("no key", ask(nowhere, "", ""), 401, model.CodeUnauthorized, "", "")
		denied("wrong key", ask(nowhere, model.FormatKey([32]byte{7}).Reveal(), ""), 401, model.CodeUnauthorized, "", "")
		denied("revoked key", ask(nowhere, c.revoked, ""), 401, model.CodeUnauthorized, ours, "")
		denied("expired key", ask(nowhere, c.expired, ""), 401, model.CodeUnauthorized, ours, "")
		denied("scope missing", ask(nowhere, c.without(op.Scope), ""), 403, model.CodeInsufficientScope, ours, string(op.Scope))
	} else {
		ours = ""
	}
	if op.Destructive {
		denied("toggle off", ask(nowhere, c.org.careful, ""), 403, model.CodeDangerousNotAllowed, ours, "")
	}
	if op.Rate != model.RateNone {
		for i, f := range all {
			if f.status == http.StatusForbidden {
				all[i].spends = rateLimit
			}
		}
		denied("over the rate", ask(nowhere, c.spent, ""), 429, model.CodeRateLimited, ours, "")
	}
	wrong("malformed query", ask(nowhere, c.org.full, validBody(r, "proj_none")), 422, model.CodeValidation, ours)
	if takesJSON(r) {
		wrong("malformed body", ask(c.path(r, false), c.org.full, `{"nonsense":`), 422, model.CodeValidation, ours)
		wrong("unknown field", ask(c.path(r, false), c.org.full, `{"nonsense":1}`), 422, model.CodeValidation, ours)
	}
	for name, body := range malformedBodies(r) {
		wrong(name, ask(c.path(r, false), c.org.full, body), 422, model.CodeValidation, ours)
	}
	if strings.Contains(r.path, "{id}") && takesJSON(r) {
		long := strings.NewReplacer("{id}", strings.Repeat("x", 100), "{backupId}", strings.Repeat("x", 100)).Replace(r.path)
		wrong("unknown field, long id", ask(long, c.org.full, `{"nonsense":1}`), 422, model.CodeValidation, ours)
		wrong("long id", ask(long, c.org.full, validBody(r, c.org.project)), 404, model.CodeNotFound, ours)
	}
	if strings.Contains(r.path, "{") {
		wrong("not found", ask(c.path(r, false), c.org.full, validBody(r, c.org.project)), 404, model.CodeNotFound, ours)
		wrong("of another organization", ask(c.path(r, true), c.other.full, validBody(r, c.other.project)), 404, model.CodeNotFound, c.other.organization)
	}
	if body := validBody(r, c.org.project); strings.Contains(body, c.org.project) {
		wrong("project of another organization", ask(c.path(r, true), c.other.full, body), 404, model.CodeNotFound, c.other.organization)
	}
	for _, special := range c.conflicts(r) {
		wrong(special.name, special.in, special.status, special.code, ours)
	}
	return all
}

// malformedBodies returns bodies whose fields contradict each other, or whose faults only the engine detects.
func malformedBodies(r route) map[string]string {
	switch r.action {
	case model.ActionBackupRestore:
		return map[string]string{
			"no name": `{"mode":"new"}`, "bad name": `{"mode":"new","name":"1"}`, "reserved name": `{"mode":"new","name":"postgres"}`,
			"name in place": `{"name":"n"}`,
		}
	case model.ActionExportCreate:
		return map[string]string{"empty name": `{"dbname":""}`, "long name": `{"dbname":"` + strings.Repeat("n", 64) + `"}`}
	case model.ActionBranchCreate:
		return map[string]string{
			"reserved name": `{"name":"postgres"}`, "no name": `{}`, "too short": `{"name":"n","expires_in":59}`,
		}
	case model.ActionDatabaseUpdate:
		return map[string]string{"reserved name": `{"name":"postgres"}`, "half a window": `{"maintenance_window":{"day":"monday"}}`}
	case model.ActionDatabaseRoleCreate:
		return map[string]string{
			"no access": `{"name":"n"}`, "unknown access": `{"name":"n","access":"all"}`, "bad name": `{"name":"N","access":"read"}`, "no name": `{"access":"read"}`,
			"the superuser": `{"name":"holdfast_x","access":"read"}`, "PostgreSQL's": `{"name":"pg_monitor","access":"owner"}`, "a reader": `{"name":"x_readonly","access":"read"}`,
			"public": `{"name":"public","access":"read"}`, "no sessions": `{"name":"n","access":"read","connection_limit":0}`,
		}
	case model.ActionDatabaseRoleUpdate:
		return map[string]string{"unknown access": `{"access":"superuser"}`, "no sessions": `{"connection_limit":0}`}
	case model.ActionUploadLink:
		return map[string]string{"no key": `{"max_bytes":1}`, "key and prefix": `{"key":"a","key_prefix":"b"}`, "dots": `{"key_prefix":"../"}`}
	case model.ActionDownloadLink:
		return map[string]string{"dots": `{"key":"a/.."}`}
	case model.ActionBackupPin:
		return map[string]string{"reason for no pin": `{"pinned":false,"reason":"x"}`}
	case model.ActionWebhookCreate:
		hook := func(name, url, events string) string {
			return fmt.Sprintf(`{"name":%q,"url":%q,"events":[%s]}`, name, url, events)
		}
		return map[string]string{
			"bad name": hook("-", "https://hook.invalid/", `"*"`), "no URL": hook("h", "nonsense", `"*"`), "http": hook("h", "http://hook.invalid/", `"*"`),
			"password in the URL": hook("h", "https://u:p@hook.invalid/", `"*"`), "loopback": hook("h", "https://127.0.0.1/", `"*"`),
			"name of loopback": hook("h", "https://LOCALHOST./", `"*"`), "private": hook("h", "https://[::ffff:10.0.0.1]/", `"*"`),
			"metadata": hook("h", "https://169.254.169.254/", `"*"`), "unknown event": hook("h", "https://hook.invalid/", `"nothing.*"`),
			"no event": hook("h", "https://hook.invalid/", ""), "fragment": hook("h", "https://hook.invalid/#x", `"*"`),
		}
	case model.ActionRecoveryCreate:
		return map[string]string{
			"position of nothing": `{"target_lsn":"0/0"}`, "position of nothing, dry": `{"target_lsn":"0/0","dry_run":true}`,
			"no name": `{"target_lsn":"0/1","mode":"new"}`, "no name, dry": `{"target_lsn":"0/1","mode":"new","dry_run":true}`,
			"bad name": `{"target_lsn":"0/1","mode":"new","name":"1","dry_run":true}`, "name in place": `{"target_lsn":"0/1","name":"n","dry_run":true}`,
			"position of nothing into a new one": `{"target_lsn":"0/0","mode":"new","name":"n"}`,
		}
	default:
		return nil
	}
}

// takesJSON reports whether a route takes a JSON body.
func takesJSON(r route) bool {
	return r.method != http.MethodGet && r.method != http.MethodDelete && r.action != model.ActionObjectUpload &&
		!slices.Contains(withoutFields(), r.action)
}

// withoutFields returns the actions that are posted without fields.
func withoutFields() []model.Action {
	return []model.Action{
		model.ActionDatabaseRestart, model.ActionImportCutover, model.ActionBackupCreate, model.ActionRecoveryUndo, model.ActionOperationCancel,
		model.ActionDatabaseRoleRotate, model.ActionWebhookRotate, model.ActionWebhookPing, model.ActionWebhookResend, model.ActionSetupLinkCreate,
		model.ActionDatabaseSessionCancel, model.ActionDatabaseSessionTerminate, model.ActionStatementReset,
		model.ActionTrashRestore, model.ActionTrashBucketRestore, model.ActionTrashObjectRestore,
	}
}

// without returns a key that may do everything except what needs the scope. It may not delete either, and has
// budgets left: the scope is checked first.
func (c *contract) without(scope model.Scope) string {
	all := slices.DeleteFunc(slices.Clone(model.Scopes()), func(s model.Scope) bool { return s == scope })
	call := &model.Call{Operation: model.Operation{Action: model.ActionKeyCreate}, Actor: model.Actor{Type: model.ActorOperator}, Organization: c.org.organization}
	secret, _, err := c.engine.Access.KeyCreate(call, access.NewKey{Name: "all but one", Scopes: all, Source: model.KeySourceOperator})
	if err != nil {
		panic(err)
	}
	return secret.Reveal()
}

// idOf returns the id of a key with this text.
func (c *contract) idOf(text string) string {
	call := &model.Call{}
	_ = c.engine.Access.Authenticate(call, text) // it names revoked ones too
	return call.Actor.ID
}

// conflicts returns the well-formed requests that cause a conflict: something is taken, is permanently busy, or
// exceeds the plan.
func (c *contract) conflicts(r route) []fault {
	post := func(body string) request {
		return request{method: r.method, path: c.path(r, true), key: c.org.full, body: body, contentType: "application/json"}
	}
	with := func(in request, name, value string) request {
		in.header = map[string]string{name: value}
		return in
	}
	named := func(name string) string { return fmt.Sprintf(`{"project":%q,"name":%q}`, c.org.project, name) }
	taken := func(name string, in request) fault {
		return fault{name: name, in: in, status: 409, code: model.CodeConflict}
	}
	over := func(in request) fault {
		return fault{name: "over the plan", in: in, status: 403, code: model.CodeForbidden}
	}
	imported := func(name string) string {
		return fmt.Sprintf(`{"project":%q,"name":%q,"source_url":"postgres://u:p@127.0.0.1:1/d"}`, c.org.project, name)
	}
	object := post("bytes")
	object.contentType = ""
	switch r.action {
	case model.ActionDatabaseCreate:
		return []fault{taken("name taken", post(named("taken"))), over(post(named("another")))}
	case model.ActionDatabaseUpdate:
		stale := with(post(`{"connection_limit":null}`), "If-Match", `"x"`)
		return []fault{
			{name: "no such project", in: post(`{"project":"proj_none"}`), status: 404, code: model.CodeNotFound},
			{name: "another state", in: stale, status: 412, code: model.CodeConflict},
		}
	case model.ActionDatabaseRoleCreate:
		return []fault{
			taken("name taken", post(`{"name":"taken","access":"read"}`)), taken("the owner", post(`{"name":"app","access":"read"}`)),
			{name: "more than the server has", in: post(`{"name":"n","access":"read","connection_limit":100000}`), status: 422, code: model.CodeValidation, says: "connection_limit"},
		}
	case model.ActionDatabaseRoleUpdate:
		stale := with(post(`{"connection_limit":3}`), "If-Match", `"x"`)
		stale.path = strings.Replace(stale.path, "{name}", "taken", 1)
		absent, own := post(`{"access":"read"}`), post(`{"access":"read"}`)
		own.path = strings.Replace(own.path, "{name}", "app", 1)
		return []fault{
			{name: "another state", in: stale, status: 412, code: model.CodeConflict},
			{name: "no such role", in: absent, status: 404, code: model.CodeNotFound},
			{name: "the owner", in: own, status: 404, code: model.CodeNotFound, says: "own role"},
		}
	case model.ActionDatabaseRoleGet, model.ActionDatabaseRoleDelete, model.ActionDatabaseRoleRotate:
		return []fault{{name: "no such role", in: post(""), status: 404, code: model.CodeNotFound, says: "no role"}}
	case model.ActionBucketCreate:
		return []fault{taken("name taken", post(named("taken"))), over(post(named("another")))}
	case model.ActionImportCreate:
		return []fault{taken("name taken", post(imported("taken"))), over(post(imported("another")))}
	case model.ActionObjectUpload:
		other := object
		other.path = strings.Replace(other.path, "key=k", "key=another", 1)
		return []fault{taken("object there", with(object, "If-None-Match", "*")), over(other)}
	case model.ActionProjectCreate:
		return []fault{taken("name taken", post(`{"name":"default"}`))}
	case model.ActionProjectDelete:
		return []fault{taken("not empty", post(""))}
	case model.ActionKeyUpdate:
		revoked := post(`{"name":"again"}`)
		revoked.path = "/account/api-keys/" + c.idOf(c.revoked)
		return []fault{
			taken("revoked", revoked),
			{name: "the toggle", in: post(`{"allow_dangerous":false}`), status: 403, code: model.CodeForbidden, says: "only a person"},
			{name: "valid for longer", in: request{
				method: r.method, path: "/account/api-keys/" + c.idOf(c.brief), key: c.org.full, body: `{"expires_at":"2099-01-01T00:00:00Z"}`, contentType: "application/json",
			}, status: 403, code: model.CodeForbidden, says: "not later"},
		}
	case model.ActionUserInvite:
		return []fault{
			taken("invited already", post(`{"email":"viewer@example.com","role":"viewer"}`)),
			{name: "an admin", in: post(`{"email":"root@example.com","role":"admin"}`), status: 403, code: model.CodeForbidden, says: "viewers only"},
		}
	case model.ActionUserRole:
		return []fault{{name: "an owner", in: post(`{"role":"owner"}`), status: 403, code: model.CodeForbidden, says: "viewers only"}}
	case model.ActionKeyCreate:
		return []fault{{name: "the toggle", in: post(`{"name":"n","preset":"read_only","allow_dangerous":true}`), status: 403, code: model.CodeForbidden, says: "only a person"}}
	case model.ActionObjectUpdate:
		return []fault{{name: "no such version", in: request{method: r.method, path: c.path(r, true) + "?version_id=none", key: c.org.full, body: `{"tags":{}}`, contentType: "application/json"}, status: 404, code: model.CodeNotFound}}
	case model.ActionObjectCopy:
		return []fault{
			taken("object there", with(post(`{"key":"k","source_key":"k"}`), "If-None-Match", "*")), over(post(`{"key":"copy","source_key":"k"}`)),
			{name: "no source", in: post(`{"key":"k","source_key":"none"}`), status: 404, code: model.CodeNotFound},
			{name: "no source bucket", in: post(`{"key":"k","source_bucket":"bucket_none","source_key":"k"}`), status: 404, code: model.CodeNotFound},
		}
	case model.ActionBackupCreate:
		return []fault{over(post(""))}
	case model.ActionBackupRestore:
		return []fault{taken("name taken", post(`{"mode":"new","name":"taken"}`)), over(post(`{"mode":"new","name":"another"}`))}
	case model.ActionBackupDelete:
		return []fault{taken("pinned", post(""))}
	case model.ActionBucketDelete:
		return []fault{taken("not empty", post(""))}
	case model.ActionOperationCancel:
		return []fault{taken("ended", post(""))}
	case model.ActionRecoveryUndo:
		return []fault{{name: "nothing to undo", in: post(""), status: 403, code: model.CodeForbidden}}
	case model.ActionRecoveryCreate:
		there := fmt.Sprintf(`"target_lsn":%q,"mode":"new"`, c.ids["lsn"])
		return []fault{
			{name: "outside the window", in: post(`{"target_time":"2001-01-01T00:00:00Z"}`), status: 422, code: model.CodeValidation},
			taken("name taken", post("{"+there+`,"name":"taken"}`)), taken("name taken, dry", post("{"+there+`,"name":"taken","dry_run":true}`)),
		}
	case model.ActionRLSSet:
		return []fault{{name: "no such table", in: post(`{"table":"none","enabled":true}`), status: 404, code: model.CodeNotFound}}
	case model.ActionStatementPlan:
		return []fault{
			{name: "not counted", in: post(`{"statement_id":"1"}`), status: 404, code: model.CodeNotFound},
			{name: "not SQL", in: post(`{"statement":"selec 1"}`), status: 422, code: model.CodeValidation, says: "syntax error"},
		}
	case model.ActionDatabaseUpgrade:
		return []fault{
			{name: "too old", in: post(`{"version":"14"}`), status: 422, code: model.CodeValidation, says: "too old"},
			{name: "the version that it has", in: post(`{"version":"15"}`), status: 422, code: model.CodeValidation, says: "newer"},
			{name: "not there", in: post(`{"version":"99"}`), status: 409, code: model.CodeConflict, says: "postgresql-99"},
		}
	case model.ActionSettingsUpdate:
		return []fault{
			{name: "not one of them", in: post(`{"settings":{"archive_command":"rm"}}`), status: 422, code: model.CodeValidation, says: "archive_command"},
			{name: "out of bounds", in: post(`{"settings":{"work_mem":"9TB"}}`), status: 422, code: model.CodeValidation, says: "settings.work_mem"},
			{name: "none", in: post(`{"settings":{}}`), status: 422, code: model.CodeValidation, says: "at least one"},
		}
	case model.ActionExtensionSet:
		return []fault{
			{name: "forbidden", in: post(`{"name":"dblink"}`), status: 403, code: model.CodeForbidden, says: "reach"},
			{name: "unknown", in: post(`{"name":"nothing"}`), status: 403, code: model.CodeForbidden, says: "catalogue"},
		}
	default:
		return nil
	}
}

// holds sends a faulty request and checks the result.
func (c *contract) holds(t *testing.T, r route, f fault) {
	for range f.spends {
		c.do(t, f.in)
	}
	got := c.do(t, f.in)
	if got.status != f.status || got.code != string(f.code) || !strings.Contains(got.msg, f.says) {
		t.Fatalf("%s %s: %d %s, want %d %s: %s", f.in.method, f.in.path, got.status, got.code, f.status, f.code, got.msg)
	}
	if challenge := got.header.Get("WWW-Authenticate"); (challenge != "") != (f.status == 401) {
		t.Errorf("WWW-Authenticate: %q", challenge)
	}
	if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); (f.status == 429) != (err == nil && seconds > 0) {
		t.Errorf("Retry-After: %q", got.header.Get("Retry-After"))
	}
	if f.log == "" {
		if c.nobodys++; c.nobodys > 25 { // beyond 30 a minute from one address they are coalesced
			return
		}
	}
	e := c.entry(t, f.log, got.header.Get("X-Request-Id"))
	if e.Action != r.action || e.ErrorCode != f.code {
		t.Errorf("audited as %s %s %s", e.Action, e.Outcome, e.ErrorCode)
	}
	if want := f.outcome; e.Outcome != want && (f.status != 403 || e.Outcome != model.OutcomeDenied) {
		t.Errorf("audited as %s, want %s", e.Outcome, want)
	}
}
