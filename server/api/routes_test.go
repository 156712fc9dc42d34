package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// TestRoutesAndOperations compares the two tables: every operation has one route (the deletion of an object has two:
// by path and by query), and every path has an operation.
func TestRoutesAndOperations(t *testing.T) {
	routed := map[model.Action]int{}
	for _, r := range (&handlers{}).routes() {
		routed[r.action]++
	}
	for _, op := range model.Operations() {
		want := 1
		if op.Action == model.ActionObjectDelete {
			want = 2
		}
		if routed[op.Action] != want {
			t.Errorf("%s has %d routes, want %d", op.Action, routed[op.Action], want)
		}
		delete(routed, op.Action)
	}
	for action := range routed {
		t.Errorf("%s is routed and no operation", action)
	}
}

// specification has the endpoints and scopes of the specification.
const specification = `
POST /device/authorize
POST /device/token
GET /databases database:read
POST /databases database:create
GET /databases/{id} database:read
PATCH /databases/{id} database:update
DELETE /databases/{id} database:delete
POST /databases/{id}/restart database:update
POST /databases/{id}/rotate-password database:update
GET /databases/{id}/connection database:read
GET /databases/{id}/log database:update
GET /databases/{id}/metrics database:read
POST /databases/{id}/upgrade database:update
GET /databases/{id}/branches database:read
POST /databases/{id}/branches backup:restore
POST /databases/{id}/branch/reset backup:restore
GET /databases/{id}/branch/diff database:read
GET /databases/{id}/ssl database:read
GET /databases/{id}/allowlist database:read
PUT /databases/{id}/allowlist database:update
GET /databases/{id}/rls database:read
POST /databases/{id}/rls database:update
GET /databases/{id}/roles database:read
POST /databases/{id}/roles database:update
GET /databases/{id}/roles/{name} database:read
PATCH /databases/{id}/roles/{name} database:update
DELETE /databases/{id}/roles/{name} database:update
POST /databases/{id}/roles/{name}/rotate-password database:update
GET /databases/{id}/sessions database:read
POST /databases/{id}/sessions/{sessionId}/cancel database:update
POST /databases/{id}/sessions/{sessionId}/terminate database:update
GET /databases/{id}/statements database:read
POST /databases/{id}/statements/reset database:update
POST /databases/{id}/statements/explain database:update
GET /databases/{id}/locks database:read
GET /databases/{id}/relations database:read
GET /databases/{id}/databases database:read
GET /databases/{id}/replication database:read
DELETE /databases/{id}/replication/slots/{slot} database:update
GET /databases/{id}/settings database:read
GET /versions database:read
PATCH /databases/{id}/settings database:update
GET /databases/{id}/extensions database:read
POST /databases/{id}/extensions database:update
DELETE /databases/{id}/extensions/{name} database:update
GET /databases/{id}/backups backup:list
POST /databases/{id}/backups backup:create
GET /databases/{id}/backups/{backupId} backup:list
DELETE /databases/{id}/backups/{backupId} backup:delete
POST /databases/{id}/backups/{backupId}/restore backup:restore
POST /databases/{id}/backups/{backupId}/pin backup:create
GET /databases/{id}/recovery backup:list
POST /databases/{id}/recovery/restore-request backup:restore
GET /databases/{id}/export backup:download
POST /databases/{id}/export backup:create
GET /operations database:read
GET /operations/{operationId} database:read
POST /operations/{operationId}/cancel database:read
GET /operations/{operationId}/events database:read
GET /events database:read
GET /webhooks webhook:manage
POST /webhooks webhook:manage
GET /webhooks/{webhookId} webhook:manage
PATCH /webhooks/{webhookId} webhook:manage
DELETE /webhooks/{webhookId} webhook:manage
POST /webhooks/{webhookId}/rotate-secret webhook:manage
POST /webhooks/{webhookId}/ping webhook:manage
GET /webhooks/{webhookId}/deliveries webhook:manage
POST /webhooks/{webhookId}/deliveries/{deliveryId}/resend webhook:manage
GET /imports database:read
POST /imports database:create
GET /imports/{importId} database:read
POST /imports/{importId}/cutover database:create
GET /buckets storage:read
POST /buckets storage:create
DELETE /buckets/{id} storage:delete
GET /buckets/{id}/objects storage:read
POST /buckets/{id}/objects storage:create
DELETE /buckets/{id}/objects/{key} storage:delete
GET /account/usage account:read
GET /account/limits account:read
GET /account/billing billing:read
GET /account/api-keys account:read
GET /account/audit-logs account:read
GET /agent/status account:read
GET /agent/recommendations account:read

POST /databases/{id}/recovery/undo backup:restore
GET /account/storage-credentials storage:read
GET /buckets/{id} storage:read
PATCH /buckets/{id} storage:update
GET /buckets/{id}/objects/{key} storage:read
DELETE /buckets/{id}/objects storage:delete
PATCH /buckets/{id}/objects/{key} storage:update
POST /buckets/{id}/copy-object storage:create
POST /buckets/{id}/upload-links storage:create
POST /buckets/{id}/download-links storage:read
GET /buckets/{id}/versions storage:read
GET /buckets/{id}/restore storage:read
POST /buckets/{id}/restore storage:update
GET /account/offsite account:read
GET /account/audit-logs/export account:read
GET /projects account:read
POST /projects project:manage
GET /projects/{projectId} account:read
PATCH /projects/{projectId} project:manage
DELETE /projects/{projectId} project:manage
POST /account/api-keys key:manage
GET /account/api-keys/{keyId} account:read
PATCH /account/api-keys/{keyId} key:manage
DELETE /account/api-keys/{keyId} key:manage
GET /users team:read
POST /users team:manage
GET /users/{userId} team:read
PATCH /users/{userId} team:manage
DELETE /users/{userId} team:manage
POST /users/{userId}/setup-link team:manage
DELETE /users/{userId}/sessions session:manage
GET /sessions session:manage
DELETE /sessions/{sessionId} session:manage
GET /trash/databases trash:manage
POST /trash/databases/{trashId}/restore trash:manage
DELETE /trash/databases/{trashId} trash:delete
GET /trash/buckets trash:manage
POST /trash/buckets/{trashId}/restore trash:manage
DELETE /trash/buckets/{trashId} trash:delete
GET /trash/objects trash:manage
POST /trash/objects/{trashId}/restore trash:manage
DELETE /trash/objects/{trashId} trash:delete
DELETE /trash trash:delete
`

// TestRoutesAndSpecification compares the routes with the specification and its extensions.
func TestRoutesAndSpecification(t *testing.T) {
	var got []string
	for _, r := range (&handlers{}).routes() {
		got = append(got, strings.TrimSpace(r.method+" "+r.path+" "+string(model.OperationFor(r.action).Scope)))
	}
	want := slices.DeleteFunc(strings.Split(specification, "\n"), func(line string) bool { return line == "" })
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not specified: %s", line)
		}
	}
}

// TestDescriptionIsWhole checks what the document must contain for every operation.
func TestDescriptionIsWhole(t *testing.T) {
	w := open(t)
	names := map[string]bool{}
	for path, item := range w.doc.T.Paths.Map() {
		for method, op := range item.Operations() {
			what := method + " " + path
			if names[op.OperationID] || op.OperationID == "" {
				t.Errorf("%s: operationId %q is missing or taken", what, op.OperationID)
			}
			names[op.OperationID] = true
			if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s: summary %q, description %q, tags %v", what, op.Summary, op.Description, op.Tags)
			}
			if op.Security == nil || (len(*op.Security) == 0) != strings.HasPrefix(path, "/device/") {
				t.Errorf("%s: security %v", what, op.Security)
			}
			if op.RequestBody != nil {
				checkClosed(t, what, op.RequestBody.Value.Content.Get("application/json"))
			}
		}
	}
	if n := len((&handlers{}).routes()); len(names) != n {
		t.Errorf("%d operations are described, %d routed", len(names), n)
	}
}

// TestSchemas checks that responses omit no field, and that nullable values are documented as such.
func TestSchemas(t *testing.T) {
	w := open(t)
	requests := map[string]bool{}
	for _, item := range w.doc.T.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil && op.RequestBody.Value.Content["application/json"] != nil {
				collectRequests(requests, op.RequestBody.Value.Content["application/json"].Schema)
			}
		}
	}
	for name, schema := range w.doc.T.Components.Schemas {
		for field, property := range schema.Value.Properties {
			variable := name == "Environment" // an absent variable is not null
			if !requests["#/components/schemas/"+name] && !variable && !slices.Contains(schema.Value.Required, field) {
				t.Errorf("%s.%s may be missing; absent is null", name, field)
			}
			if p := property.Value; p.Type.Includes("null") && len(p.Enum) > 0 && !slices.Contains(p.Enum, nil) {
				t.Errorf("%s.%s may be null, which is not among its values", name, field)
			}
			if strings.HasPrefix(field, "$") {
				t.Errorf("%s has %s", name, field)
			}
		}
	}
}

// collectRequests notes a schema of requests, and those of the lists and of the nullable values in it.
func collectRequests(requests map[string]bool, s *openapi3.SchemaRef) {
	if s.Ref != "" && requests[s.Ref] {
		return
	}
	requests[s.Ref] = true
	for _, property := range s.Value.Properties {
		if property.Value.Items != nil {
			collectRequests(requests, property.Value.Items)
		}
		for _, nullable := range property.Value.AnyOf {
			collectRequests(requests, nullable)
		}
	}
}

// checkClosed checks that a body permits no unknown fields.
func checkClosed(t *testing.T, what string, body *openapi3.MediaType) {
	t.Helper()
	if body == nil || body.Schema.Ref == "" { // an upload
		return
	}
	if has := body.Schema.Value.AdditionalProperties.Has; has == nil || *has {
		t.Errorf("%s: its body takes unknown fields", what)
	}
}

func TestSummary(t *testing.T) {
	for name, want := range map[string]string{
		"listDatabases": "List databases", "getDatabaseSSL": "Get database SSL", "getUsage": "Get usage",
		"deleteObjectByQuery": "Delete object by query",
	} {
		if got := summary(name); got != want {
			t.Errorf("summary(%q) = %q, want %q", name, got, want)
		}
	}
}
