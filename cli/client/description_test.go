package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"holdfast/cli/client"
	"holdfast/engine/model"
	"holdfast/server/api/apitest"
	"holdfast/server/api/wire"
)

var errConnection = errors.New("the connection broke")

// exported returns the name of an operation's method.
func exported(operation string) string { return strings.ToUpper(operation[:1]) + operation[1:] }

// documented iterates over the operations of the OpenAPI document.
func documented(t *testing.T, doc *apitest.Description, visit func(*openapi3.Operation)) {
	t.Helper()
	seen := 0
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			seen++
			visit(op)
		}
	}
	if seen < len(model.Operations()) {
		t.Errorf("%d operations are described, %d are in the table", seen, len(model.Operations()))
	}
}

// TestEveryOperationHasAMethod compares the methods and their result types with
// the OpenAPI document that an appliance serves.
func TestEveryOperationHasAMethod(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t, newAppliance(t).url)
	methods := reflect.TypeFor[*client.Client]()
	documented(t, doc, func(op *openapi3.Operation) {
		method, ok := methods.MethodByName(exported(op.OperationID))
		if !ok {
			t.Errorf("%s: there is no method %s", op.OperationID, exported(op.OperationID))
			return
		}
		answer := op.Responses.Value("200")
		if answer == nil {
			return // not in this version of the appliance
		}
		if answer.Value.Content["application/json"] == nil {
			return // a stream
		}
		data := answer.Value.Content["application/json"].Schema.Value.Properties["data"]
		c := &comparison{t, op.OperationID}
		if either := data.Value.OneOf; len(either) == 2 { // an operation or a plan
			data = either[0]
			c.types(either[1], reflect.TypeFor[wire.RestorePlan](), "data")
		}
		c.types(data, record(method.Type.Out(0)), "data")
	})
	for _, op := range model.Operations() {
		if _, ok := methods.MethodByName(exported(op.Name)); !ok {
			t.Errorf("%s: there is no method for it", op.Name)
		}
	}
}

// record returns the data type of a method's result: a page holds it in its
// first field.
func record(result reflect.Type) reflect.Type {
	if result == reflect.TypeFor[client.ObjectPage]() {
		result = result.Field(0).Type
	}
	if strings.HasPrefix(result.Name(), "Page[") || result == reflect.TypeFor[client.AuditPage]() {
		return result.Field(0).Type
	}
	return result
}

// comparison compares schemas with Go types.
type comparison struct {
	t  *testing.T
	op string
}

func (c *comparison) types(ref *openapi3.SchemaRef, got reflect.Type, at string) {
	c.t.Helper()
	schema, nullable := withoutNull(ref.Value)
	kind := got.Kind()
	if nullable && kind == reflect.Pointer {
		got, kind = got.Elem(), got.Elem().Kind()
	} else if nullable && kind != reflect.Map && kind != reflect.Slice && kind != reflect.Interface {
		c.t.Errorf("%s: %s may be null, and %s cannot", c.op, at, got)
	} else if !nullable && kind == reflect.Pointer {
		c.t.Errorf("%s: %s is never null, and %s is a pointer", c.op, at, got)
		return
	}
	is := schema.Type.Is
	switch {
	case kind == reflect.Interface:
	case is("array") && kind == reflect.Slice:
		c.types(schema.Items, got.Elem(), at+"[]")
	case is("object") && kind == reflect.Map:
	case is("object") && kind == reflect.Struct:
		c.fields(schema, got, at)
	case is("string") && schema.Format == "date-time" && got == reflect.TypeFor[time.Time]():
	case is("string") && schema.Format != "date-time" && kind == reflect.String:
	case is("boolean") && kind == reflect.Bool:
	case is("integer") && (kind == reflect.Int || kind == reflect.Int64):
	case is("number") && kind == reflect.Float64:
	default:
		c.t.Errorf("%s: %s is %v (%s), and %s in Go", c.op, at, schema.Type, schema.Format, got)
	}
}

func (c *comparison) fields(schema *openapi3.Schema, got reflect.Type, at string) {
	c.t.Helper()
	fields := jsonFields(got)
	for name, property := range schema.Properties {
		if field, ok := fields[name]; ok {
			c.types(property, field, at+"."+name)
		} else {
			c.t.Errorf("%s: %s.%s is described, and %s has no such field", c.op, at, name, got)
		}
	}
	for name := range fields {
		if _, ok := schema.Properties[name]; !ok {
			c.t.Errorf("%s: %s has %s, which is not described", c.op, got, name)
		}
	}
}

func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		if field.Anonymous {
			maps.Copy(fields, jsonFields(field.Type))
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = field.Type
	}
	return fields
}

// withoutNull returns a nullable schema's other alternative.
func withoutNull(schema *openapi3.Schema) (*openapi3.Schema, bool) {
	for i, either := range schema.AnyOf {
		if either.Value.Type.Is("null") {
			return schema.AnyOf[1-i].Value, true
		}
	}
	if !schema.Type.Includes("null") {
		return schema, false
	}
	bare := *schema
	rest := slices.DeleteFunc(slices.Clone(*schema.Type), func(s string) bool { return s == "null" })
	bare.Type = (*openapi3.Types)(&rest)
	return &bare, true
}

// notAStream accepts the error about a response that is none.
func notAStream(err error) error {
	if errors.Is(err, client.ErrNotAPI) {
		return nil
	}
	return err
}

// calls uses every parameter and field that each method can send.
func calls(ctx context.Context, c *client.Client) map[string]func() error {
	const id, other = "db_01k6zv7r9pxa3c5n8m2q4t6w8y", "bkp_01k6zv7r9pxa3c5n8m2q4t6w8y"
	page, yes, now := client.ListOptions{Limit: 7, Cursor: "c"}, true, time.Now().UTC()
	made := client.Filter{Name: "n", CreatedAfter: now.Add(-time.Hour), CreatedBefore: now}
	trashed := client.TrashOptions{ListOptions: page, Project: "p", Name: "n", DeletedAfter: made.CreatedAfter, DeletedBefore: now}
	filter := made
	filter.Project = "p"
	err := func(_ any, err error) error { return err }
	return map[string]func() error{
		"authorizeDevice": func() error {
			return err(c.AuthorizeDevice(ctx, wire.AuthorizeDevice{ClientName: new("n"), ScopePreset: new(wire.PresetDeveloper)}))
		},
		"getDeviceToken": func() error { return err(c.GetDeviceToken(ctx, "code")) },
		"listDatabases": func() error {
			return err(c.ListDatabases(ctx, client.DatabaseOptions{ListOptions: page, Filter: filter, Status: wire.DatabaseAvailable}))
		},
		"createDatabase": func() error {
			return err(c.CreateDatabase(ctx, wire.CreateDatabase{Project: "p", Name: "n", DBUser: new("u"), Password: new("a long password"), Version: new("16"), LogicalReplication: new(true), SleepAfterSeconds: new(wire.WholeNumber(600))}))
		},
		"getDatabase":     func() error { return err(c.GetDatabase(ctx, id)) },
		"deleteDatabase":  func() error { return err(c.DeleteDatabase(ctx, id)) },
		"restartDatabase": func() error { return err(c.RestartDatabase(ctx, id)) },
		"rotateDatabasePassword": func() error {
			return err(c.RotateDatabasePassword(ctx, id, wire.RotatePassword{TerminateSessions: new(true)}))
		},
		"getDatabaseConnection": func() error {
			return err(c.GetDatabaseConnection(ctx, id, client.ConnectionOptions{CAFile: "/etc/app/ca.crt"}))
		},
		"getDatabaseLog": func() error {
			return err(c.GetDatabaseLog(ctx, id, client.LogOptions{Limit: 7, Level: wire.LogError, Search: "s", Since: now.Add(-time.Hour), Until: now, After: "1-2", Wait: time.Second}))
		},
		"listDatabaseRoles": func() error { return err(c.ListDatabaseRoles(ctx, id)) },
		"createDatabaseRole": func() error {
			return err(c.CreateDatabaseRole(ctx, id, wire.CreateDatabaseRole{Name: "reports", Access: wire.AccessRead, ConnectionLimit: new(wire.WholeNumber(5))}))
		},
		"getDatabaseRole": func() error { return err(c.GetDatabaseRole(ctx, id, "reports")) },
		"updateDatabaseRole": func() error {
			return err(c.UpdateDatabaseRole(ctx, id, "reports", wire.UpdateDatabaseRole{Access: new(wire.AccessWrite), ConnectionLimit: wire.SetTo[wire.WholeNumber](5)}))
		},
		"deleteDatabaseRole":         func() error { return err(c.DeleteDatabaseRole(ctx, id, "reports")) },
		"rotateDatabaseRolePassword": func() error { return err(c.RotateDatabaseRolePassword(ctx, id, "reports")) },
		"listPostgresDatabases":      func() error { return err(c.ListPostgresDatabases(ctx, id)) },

		"listDatabaseSessions":     func() error { return err(c.ListDatabaseSessions(ctx, id)) },
		"cancelDatabaseSession":    func() error { return err(c.CancelDatabaseSession(ctx, id, "1-1")) },
		"terminateDatabaseSession": func() error { return err(c.TerminateDatabaseSession(ctx, id, "1-1")) },
		"getDatabaseReplication":   func() error { return err(c.GetDatabaseReplication(ctx, id)) },
		"dropReplicationSlot":      func() error { return err(c.DropReplicationSlot(ctx, id, "debezium", true)) },
		"updateDatabase": func() error {
			return err(c.UpdateDatabase(ctx, id, wire.UpdateDatabase{
				Name: new("n"), Project: new("p"), BackupEverySeconds: wire.SetTo[wire.WholeNumber](3600),
				BackupRetentionDays: wire.Default[wire.WholeNumber](), ConnectionLimit: wire.SetTo[wire.WholeNumber](5),
				MaintenanceWindow:  wire.SetTo(wire.MaintenanceWindow{Day: wire.Sunday, Start: "03:00", Minutes: 60}),
				LogicalReplication: new(false), DropSlots: new(true), SleepAfterSeconds: wire.SetTo[wire.WholeNumber](600),
				ExpiresAt: wire.SetTo(now),
			}))
		},
		"getDatabaseMetrics":   func() error { return err(c.GetDatabaseMetrics(ctx, id, wire.MetricsMonth)) },
		"createExport":         func() error { return err(c.CreateExport(ctx, id, wire.CreateExport{DBName: new("tests")})) },
		"getDatabaseSSL":       func() error { return err(c.GetDatabaseSSL(ctx, id)) },
		"getDatabaseAllowlist": func() error { return err(c.GetDatabaseAllowlist(ctx, id)) },
		"replaceDatabaseAllowlist": func() error {
			return err(c.ReplaceDatabaseAllowlist(ctx, id, wire.ReplaceAllowlist{}))
		},
		"getDatabaseRLS": func() error { return err(c.GetDatabaseRLS(ctx, id, "tests")) },
		"setDatabaseRLS": func() error {
			return err(c.SetDatabaseRLS(ctx, id, wire.SetRLS{Table: "t", Schema: new("s"), Enabled: true, Force: &yes}))
		},
		"listStatements":  func() error { return err(c.ListStatements(ctx, id, wire.ByMeanTime)) },
		"resetStatements": func() error { return err(c.ResetStatements(ctx, id)) },
		"explainStatement": func() error {
			return errors.Join(err(c.ExplainStatement(ctx, id, wire.ExplainStatement{Statement: new("select 1")})),
				err(c.ExplainStatement(ctx, id, wire.ExplainStatement{StatementID: new("1")})))
		},
		"listLocks":     func() error { return err(c.ListLocks(ctx, id)) },
		"listRelations": func() error { return err(c.ListRelations(ctx, id, "tests")) },

		"listExtensions":       func() error { return err(c.ListExtensions(ctx, id)) },
		"setExtension":         func() error { return err(c.SetExtension(ctx, id, wire.SetExtension{Name: "vector", Restart: &yes})) },
		"deleteExtension":      func() error { return err(c.DeleteExtension(ctx, id, "vector")) },
		"listPostgresVersions": func() error { return err(c.ListPostgresVersions(ctx)) },
		"listBranches":         func() error { return err(c.ListBranches(ctx, id, page)) },
		"createBranch": func() error {
			return err(c.CreateBranch(ctx, id, wire.CreateBranch{Name: "n", At: &now, ExpiresIn: new(int64(3600)), SleepAfterSeconds: new(wire.WholeNumber(600))}))
		},
		"upgradeDatabase": func() error {
			return err(c.UpgradeDatabase(ctx, id, wire.UpgradeDatabase{Version: "18", DryRun: new(true)}))
		},
		"resetBranch":          func() error { return err(c.ResetBranch(ctx, id, wire.ResetBranch{At: &now})) },
		"getBranchDiff":        func() error { return err(c.GetBranchDiff(ctx, id)) },
		"listDatabaseSettings": func() error { return err(c.ListDatabaseSettings(ctx, id)) },
		"updateDatabaseSettings": func() error {
			return err(c.UpdateDatabaseSettings(ctx, id, wire.UpdateSettings{Settings: map[string]*string{"jit": nil}, Restart: &yes}))
		},
		"listBackups": func() error {
			return err(c.ListBackups(ctx, id, client.BackupOptions{
				ListOptions: page, Filter: client.Filter{CreatedAfter: made.CreatedAfter, CreatedBefore: now}, Type: wire.BackupManual, Status: wire.BackupCompleted,
			}))
		},
		"createBackup": func() error { return err(c.CreateBackup(ctx, id)) },
		"getBackup":    func() error { return err(c.GetBackup(ctx, id, other)) },
		"deleteBackup": func() error { return err(c.DeleteBackup(ctx, id, other)) },
		"restoreBackup": func() error {
			return err(c.RestoreBackup(ctx, id, other, wire.RestoreBackup{Mode: new(wire.RestoreNew), Name: new("n")}))
		},
		"pinBackup": func() error {
			return err(c.PinBackup(ctx, id, other, wire.PinBackup{Pinned: new(true), Reason: new("r")}))
		},
		"getRecovery": func() error { return err(c.GetRecovery(ctx, id)) },
		"requestRestore": func() error {
			byTime := wire.RequestRestore{TargetTime: &now, Mode: new(wire.RestoreNew), Name: new("n")}
			byPosition := wire.RequestRestore{TargetLSN: new("0/1A"), Mode: new(wire.RestoreInPlace)}
			return errors.Join(err(c.RequestRestore(ctx, id, byTime)), err(c.PlanRestore(ctx, id, byPosition)))
		},
		"undoRestore": func() error { return err(c.UndoRestore(ctx, id)) },
		"getExport":   func() error { return err(c.GetExport(ctx, id, "tests")) },
		"listOperations": func() error {
			return err(c.ListOperations(ctx, client.OperationOptions{
				ListOptions: page, Filter: client.Filter{CreatedAfter: made.CreatedAfter, CreatedBefore: now}, DatabaseID: id,
				Type: wire.OperationExport, Status: wire.OperationCancelled,
			}))
		},
		"getOperation":    func() error { return err(c.GetOperation(ctx, "op_1", 30*time.Second)) },
		"cancelOperation": func() error { return err(c.CancelOperation(ctx, "op_1")) },
		"getOperationEvents": func() error {
			for _, err := range c.GetOperationEvents(ctx, "op_1") {
				return notAStream(err)
			}
			return nil
		},
		"getEvents": func() error {
			for _, err := range c.GetEvents(ctx, client.EventOptions{After: "event_1", Type: "backup.*"}) {
				return notAStream(err)
			}
			return nil
		},
		"listWebhooks": func() error { return err(c.ListWebhooks(ctx, client.WebhookOptions{ListOptions: page, Filter: made})) },
		"createWebhook": func() error {
			return err(c.CreateWebhook(ctx, wire.CreateWebhook{Name: "n", URL: "https://example.com/", Events: []wire.EventSelector{"backup.*"}}))
		},
		"getWebhook": func() error { return err(c.GetWebhook(ctx, "wh_1")) },
		"updateWebhook": func() error {
			return err(c.UpdateWebhook(ctx, "wh_1", wire.UpdateWebhook{Name: new("n"), URL: new("https://example.com/"), Events: []wire.EventSelector{"*"}, Enabled: &yes}))
		},
		"deleteWebhook":       func() error { return err(c.DeleteWebhook(ctx, "wh_1")) },
		"rotateWebhookSecret": func() error { return err(c.RotateWebhookSecret(ctx, "wh_1")) },
		"pingWebhook":         func() error { return err(c.PingWebhook(ctx, "wh_1")) },
		"listWebhookDeliveries": func() error {
			return err(c.ListWebhookDeliveries(ctx, "wh_1", client.DeliveryOptions{ListOptions: page, Filter: client.Filter{CreatedAfter: made.CreatedAfter, CreatedBefore: now}, Status: wire.DeliveryFailed, Type: "backup.*"}))
		},
		"resendWebhookDelivery": func() error { return err(c.ResendWebhookDelivery(ctx, "wh_1", "dlv_1")) },
		"listImports": func() error {
			return err(c.ListImports(ctx, client.ImportOptions{ListOptions: page, Filter: filter, DatabaseID: id, Status: wire.ImportFailed}))
		},
		"createImport": func() error {
			same := wire.CreateImport{Project: "p", Name: "n", SourceURL: "postgres://h/d", SameCredentials: new(true)}
			own := wire.CreateImport{Project: "p", Name: "n", SourceURL: "postgres://h/d", Username: new("u"), Password: new("a long password")}
			follow := wire.CreateImport{Project: "p", Name: "n", SourceURL: "postgres://h/d", Mode: new(wire.ImportFollow), Publication: new("all"), Version: new("18")}
			return errors.Join(err(c.CreateImport(ctx, same)), err(c.CreateImport(ctx, own)), err(c.CreateImport(ctx, follow)))
		},
		"cutOverImport": func() error { return err(c.CutOverImport(ctx, "imp_1")) },
		"getImport":     func() error { return err(c.GetImport(ctx, "imp_1")) },
		"listBuckets": func() error {
			return err(c.ListBuckets(ctx, client.BucketOptions{ListOptions: page, Filter: filter, Public: &yes}))
		},
		"createBucket": func() error {
			return err(c.CreateBucket(ctx, wire.CreateBucket{Project: "p", Name: "files", Public: new(true)}))
		},
		"getBucket": func() error { return err(c.GetBucket(ctx, "bucket_1")) },
		"updateBucket": func() error {
			days := wire.WholeNumber(0)
			moved := wire.SetWebsite{RedirectHost: new("example.com"), RedirectProtocol: new(wire.WebsiteHTTPS)}
			site := wire.SetWebsite{IndexDocument: new("index.html"), ErrorDocument: new("error.html"), Rules: []wire.SetWebsiteRule{
				{KeyPrefix: new("old/"), RedirectHost: new("example.com"), RedirectProtocol: new(wire.WebsiteHTTP), ReplaceKeyPrefix: new("new/")},
				{ErrorStatus: new(wire.WholeNumber(404)), RedirectStatus: new(wire.WholeNumber(302)), ReplaceKey: new("found.html")},
			}}
			return errors.Join(err(c.UpdateBucket(ctx, "bucket_1", wire.UpdateBucket{Website: wire.SetTo(moved)})), err(c.UpdateBucket(ctx, "bucket_1", wire.UpdateBucket{
				Website: wire.SetTo(site), Public: &yes, PublicPrefixes: []string{"images/"}, PublicListing: &yes, ExpireAfterDays: &days, ExpiryRules: []wire.SetExpiryRule{{Prefix: "tmp/", Days: new(wire.WholeNumber(1))}}, Versioning: new(wire.VersioningEnabled), ObjectLock: &wire.SetBucketLock{Mode: new(wire.LockGovernance), Days: new(wire.WholeNumber(1))}, CORS: []wire.SetCORSRule{{Origins: []string{"*"}, Methods: []wire.CORSMethod{wire.CORSPut}}},
			})))
		},
		"getBucketRestore": func() error { return err(c.GetBucketRestore(ctx, "bucket_1")) },
		"restoreBucket": func() error {
			return err(c.RestoreBucket(ctx, "bucket_1", wire.RestoreBucket{TargetTime: now, DryRun: &yes}))
		},
		"deleteBucket": func() error { return err(c.DeleteBucket(ctx, "bucket_1", true)) },
		"listObjects": func() error {
			return err(c.ListObjects(ctx, "bucket_1", client.ObjectOptions{ListOptions: page, Prefix: "p/", Delimiter: "/", Order: wire.ByKey}))
		},
		"uploadObject": func() error {
			up := client.Upload{
				Key: "a/b", Body: strings.NewReader("x"), Size: 1, IfAbsent: true, SHA256: strings.Repeat("A", 43) + "=",
				Metadata: map[string]string{"owner": "ann"}, Tags: map[string]string{"a": "b"}, CacheControl: "no-store", ContentDisposition: "attachment",
			}
			if err := err(c.UploadObject(ctx, "bucket_1", up)); !errors.Is(err, client.ErrDamaged) {
				return err
			}
			return nil
		},
		"listProjects":  func() error { return err(c.ListProjects(ctx, client.ProjectOptions{ListOptions: page, Filter: made})) },
		"createProject": func() error { return err(c.CreateProject(ctx, wire.CreateProject{Name: "n"})) },
		"getProject":    func() error { return err(c.GetProject(ctx, "proj_1")) },
		"updateProject": func() error { return err(c.UpdateProject(ctx, "proj_1", wire.UpdateProject{Name: "n"})) },
		"deleteProject": func() error { return err(c.DeleteProject(ctx, "proj_1")) },
		"createKey": func() error {
			byPreset := wire.CreateKey{Name: "n", Preset: new(wire.PresetReadOnly), ExpiresAt: &now, AllowDangerous: new(false)}
			return errors.Join(err(c.CreateKey(ctx, byPreset)), err(c.CreateKey(ctx, wire.CreateKey{Name: "n", Scopes: []wire.Scope{"key:manage"}})))
		},
		"getKey": func() error { return err(c.GetKey(ctx, "key_1")) },
		"updateKey": func() error {
			return err(c.UpdateKey(ctx, "key_1", wire.UpdateKey{Name: new("n"), ExpiresAt: &now, AllowDangerous: new(false)}))
		},
		"revokeKey":           func() error { return err(c.RevokeKey(ctx, "key_1")) },
		"getObject":           func() error { return err(c.GetObject(ctx, "bucket_1", "a//b?c", "null")) },
		"deleteObject":        func() error { return err(c.DeleteObject(ctx, "bucket_1", "/a", "null")) },
		"deleteObjectByQuery": func() error { return err(c.DeleteObjectByQuery(ctx, "bucket_1", "a/b", "null")) },
		"updateObject": func() error {
			return err(c.UpdateObject(ctx, "bucket_1", "a/b", "null", wire.UpdateObject{
				Metadata: map[string]string{"owner": "ann"}, Tags: map[string]string{}, ContentType: new("text/plain"), CacheControl: new("no-store"), Disposition: new(""),
				Retention: wire.SetTo(wire.Retention{Mode: wire.LockCompliance, Until: now}), LegalHold: new(true), BypassGovernance: new(false),
			}))
		},
		"copyObject": func() error {
			return err(c.CopyObject(ctx, "bucket_1", wire.CopyObject{Key: "k", SourceBucket: new("bucket_2"), SourceKey: "a", SourceVersion: new("null")}, true))
		},
		"createUploadLink": func() error {
			size := int64(1)
			link := wire.CreateUploadLink{
				Method: new(wire.LinkPost), Key: new("k"), MaxBytes: &size, ContentType: new("image/*"), ExpiresIn: new(wire.WholeNumber(60)), IfAbsent: &yes,
			}
			return errors.Join(err(c.CreateUploadLink(ctx, "bucket_1", wire.CreateUploadLink{KeyPrefix: new("k/")})), err(c.CreateUploadLink(ctx, "bucket_1", link)))
		},
		"createDownloadLink": func() error {
			return err(c.CreateDownloadLink(ctx, "bucket_1", wire.CreateDownloadLink{
				Key: "k", Version: new("null"), ExpiresIn: new(wire.WholeNumber(60)), Disposition: new("attachment"),
			}))
		},
		"listVersions": func() error {
			return err(c.ListVersions(ctx, "bucket_1", client.VersionOptions{ListOptions: page, Prefix: "p/"}))
		},
		"listTrashedDatabases":   func() error { return err(c.ListTrashedDatabases(ctx, trashed)) },
		"restoreTrashedDatabase": func() error { return err(c.RestoreTrashedDatabase(ctx, "db_1")) },
		"purgeTrashedDatabase":   func() error { return err(c.PurgeTrashedDatabase(ctx, "db_1")) },
		"listTrashedBuckets":     func() error { return err(c.ListTrashedBuckets(ctx, trashed)) },
		"restoreTrashedBucket":   func() error { return err(c.RestoreTrashedBucket(ctx, "bucket_1")) },
		"purgeTrashedBucket":     func() error { return err(c.PurgeTrashedBucket(ctx, "bucket_1")) },
		"listTrashedObjects": func() error {
			return err(c.ListTrashedObjects(ctx, client.TrashObjectOptions{ListOptions: page, BucketID: "bucket_1", Prefix: "p/", DeletedAfter: made.CreatedAfter, DeletedBefore: now}))
		},
		"restoreTrashedObject": func() error { return err(c.RestoreTrashedObject(ctx, "v")) },
		"purgeTrashedObject":   func() error { return err(c.PurgeTrashedObject(ctx, "v")) },
		"emptyTrash":           func() error { return err(c.EmptyTrash(ctx)) },
		"listUsers": func() error {
			created := client.Filter{CreatedAfter: made.CreatedAfter, CreatedBefore: now}
			return err(c.ListUsers(ctx, client.UserOptions{ListOptions: page, Filter: created, Email: "a@b.cd", Role: wire.RoleViewer}))
		},
		"inviteUser":      func() error { return err(c.InviteUser(ctx, wire.InviteUser{Email: "a@b.cd", Role: wire.RoleViewer})) },
		"getUser":         func() error { return err(c.GetUser(ctx, "user_1")) },
		"updateUser":      func() error { return err(c.UpdateUser(ctx, "user_1", wire.UpdateUser{Role: wire.RoleViewer})) },
		"deleteUser":      func() error { return err(c.DeleteUser(ctx, "user_1")) },
		"createSetupLink": func() error { return err(c.CreateSetupLink(ctx, "user_1")) },
		"listUserSessions": func() error {
			return err(c.ListUserSessions(ctx, client.UserSessionOptions{ListOptions: page, Filter: client.Filter{CreatedAfter: made.CreatedAfter, CreatedBefore: now}, UserID: "user_1"}))
		},
		"endUserSession":        func() error { return err(c.EndUserSession(ctx, "sess_1")) },
		"endUserSessions":       func() error { return err(c.EndUserSessions(ctx, "user_1")) },
		"getUsage":              func() error { return err(c.GetUsage(ctx)) },
		"getLimits":             func() error { return err(c.GetLimits(ctx)) },
		"getBilling":            func() error { return err(c.GetBilling(ctx)) },
		"getStorageCredentials": func() error { return err(c.GetStorageCredentials(ctx)) },
		"listKeys": func() error {
			return err(c.ListKeys(ctx, client.KeyOptions{ListOptions: page, Filter: made, Preset: wire.KeyPresetCustom, Source: wire.KeySourceDevice}))
		},
		"getOffsite": func() error { return err(c.GetOffsite(ctx)) },
		"listAuditLogs": func() error {
			return err(c.ListAuditLogs(ctx, client.AuditOptions{
				Page: 2, Limit: 7, Action: "a", Actor: "k", Resource: "r", Outcome: "success", RequestID: "req_1", IP: "::1", Since: now, Until: now,
			}))
		},
		"exportAuditLogs": func() error {
			o := client.AuditOptions{Page: 2, Limit: 7, Action: "a", Actor: "k", Resource: "r", Outcome: "success", RequestID: "req_1", IP: "::1", Since: now, Until: now}
			for _, err := range c.ExportAuditLogs(ctx, o) {
				return notAStream(err)
			}
			return nil
		},
		"getAgentStatus": func() error { return err(c.GetAgentStatus(ctx)) },
		"listRecommendations": func() error {
			return err(c.ListRecommendations(ctx, client.RecommendationOptions{
				ListOptions: page, Severity: wire.SeverityInfo, Category: wire.CategoryBackup, Code: "c",
			}))
		},
	}
}

// TestRequestsAreAsDescribed sends every parameter and field that every method
// can send, and compares them with the OpenAPI document.
func TestRequestsAreAsDescribed(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t, newAppliance(t).url)
	var asked *openapi3.Operation
	sent := map[string]bool{}
	c := newClient(t, "http://appliance.test", "key", carrier(func(r *http.Request) *http.Response {
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		asked = doc.CheckRequest(t, r, body)
		for name := range r.URL.Query() {
			sent[name] = true
		}
		for name := range r.Header {
			sent[name] = true
		}
		fields := map[string]any{}
		_ = json.Unmarshal(body, &fields) // an upload is not JSON
		for name := range fields {
			sent[name] = true
		}
		data := "{}"
		if asked != nil && asked.Responses.Value("200").Value.Content["application/json"] != nil && asked.Responses.Value("200").Value.Content["application/json"].Schema.Value.Properties["data"].Value.Type.Is("array") {
			data = "[]"
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(`{"data":` + data + `,"meta":{}}`)),
		}
	}))
	all := calls(client.WithIfMatch(client.WithIdempotencyKey(t.Context(), "once"), `"tag"`), c)
	documented(t, doc, func(op *openapi3.Operation) {
		do, ok := all[op.OperationID]
		if !ok {
			t.Errorf("%s: nothing calls it here", op.OperationID)
			return
		}
		clear(sent)
		if err := do(); err != nil {
			t.Errorf("%s: %v", op.OperationID, err)
		}
		if asked == nil || asked.OperationID != op.OperationID {
			t.Errorf("%s asks for %v", op.OperationID, asked)
		}
		for _, name := range askedFor(op) {
			if !sent[name] {
				t.Errorf("%s cannot send %s", op.OperationID, name)
			}
		}
	})
}

// askedFor returns the parameters of an operation and the fields of its body.
// It omits X-Checksum-CRC32C: the client compares the checksum after the
// upload.
func askedFor(op *openapi3.Operation) []string {
	var names []string
	for _, p := range op.Parameters {
		if p.Value.In == "query" || p.Value.In == "header" && p.Value.Name != "X-Checksum-CRC32C" {
			names = append(names, http.CanonicalHeaderKey(p.Value.Name))
		}
		if p.Value.In == "query" {
			names[len(names)-1] = p.Value.Name
		}
	}
	if op.RequestBody == nil {
		return names
	}
	if media := op.RequestBody.Value.Content["application/json"]; media != nil {
		schema, _ := withoutNull(media.Schema.Value)
		names = append(names, slices.Collect(maps.Keys(schema.Properties))...)
	}
	return names
}

// TestCutOffAnswer checks that a truncated body is an error, not an empty
// record.
func TestCutOffAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://appliance.test", "key", carrier(func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader([]byte(`{"data":[{"id":"db`)))}
	}))
	if page, err := c.ListDatabases(t.Context(), client.DatabaseOptions{}); err == nil {
		t.Errorf("%+v", page)
	}
}
