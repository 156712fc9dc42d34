package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

const nobody = "db_00000000000000000000000000"

// TestOrderOfChecks sends requests with more than one fault: the first in the order of DECISIONS is reported.
func TestOrderOfChecks(t *testing.T) {
	w := open(t, func(c *core.Config) {
		c.Rates[model.RateCreateBucket] = core.Rate{Limit: 1, Window: time.Hour}
	})
	spent := w.key(t, w.org.organization, access.NewKey{Preset: model.PresetDeveloper})
	w.do(t, request{method: "POST", path: "/buckets", key: spent, body: `{}`}) // a 422 also draws on the budget
	for _, test := range []struct {
		name   string
		in     request
		status int
		code   model.Code
	}{
		{"no key before everything", request{method: "POST", path: "/buckets?x=1", body: `{`}, 401, model.CodeUnauthorized},
		{"a bad key before everything", request{method: "POST", path: "/buckets?x=1", key: "sk_live_hf_nonsense", body: `{`}, 401, model.CodeUnauthorized},
		{"scope before form", request{method: "POST", path: "/buckets?x=1", key: w.org.read, body: `{`}, 403, model.CodeInsufficientScope},
		{"scope before dangerous", request{method: "DELETE", path: "/buckets/none?x=1", key: w.org.developer}, 403, model.CodeInsufficientScope},
		{"dangerous before form", request{method: "DELETE", path: "/buckets/none?x=1", key: w.org.careful}, 403, model.CodeDangerousNotAllowed},
		{"budget before form", request{method: "POST", path: "/buckets?x=1", key: spent, body: `{`}, 429, model.CodeRateLimited},
		{"form before resource", request{method: "DELETE", path: "/buckets/none?x=1", key: w.org.full}, 422, model.CodeValidation},
		{"form of the body before resource", request{method: "POST", path: "/databases/" + nobody + "/rls", key: w.org.full, body: `{}`}, 422, model.CodeValidation},
		{"form of a key before its bucket", request{method: "DELETE", path: "/buckets/none/objects/..", key: w.org.full}, 422, model.CodeValidation},
		{"resource last", request{method: "DELETE", path: "/buckets/none", key: w.org.full}, 404, model.CodeNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := w.do(t, test.in)
			if got.status != test.status || got.code != string(test.code) {
				t.Errorf("%d %s, want %d %s: %s", got.status, got.code, test.status, test.code, got.msg)
			}
			if challenge := got.header.Get("WWW-Authenticate"); (challenge == "Bearer") != (test.status == 401) {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
			if (test.status == 429) != (err == nil && seconds > 3590 && seconds <= 3600) {
				t.Errorf("Retry-After: %q", got.header.Get("Retry-After"))
			}
		})
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	w := open(t, func(c *core.Config) {
		c.Rates[model.RateCreateBucket] = core.Rate{Limit: 10, Window: time.Second}
	})
	for range 40 {
		got := w.do(t, request{method: "POST", path: "/buckets", key: w.org.full, body: `{}`})
		if got.status == 429 {
			if after := got.header.Get("Retry-After"); after != "1" {
				t.Errorf("Retry-After: %q, want 1", after)
			}
			return
		}
	}
	t.Error("the budget was never used up")
}

func TestBearer(t *testing.T) {
	w := open(t)
	revoked := w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly})
	w.revoke(t, revoked)
	expired := w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly, ExpiresIn: time.Nanosecond})
	for _, test := range []struct {
		name, header string
		status       int
	}{
		{"plain", "Bearer " + w.org.read, 200},
		{"lower case", "bearer " + w.org.read, 200},
		{"more spaces", "BEARER   " + w.org.read + " ", 200},
		{"none", "", 401},
		{"empty", "Bearer ", 401},
		{"no scheme", w.org.read, 401},
		{"another scheme", "Basic " + w.org.read, 401},
		{"wrong checksum", "Bearer " + w.org.read[:len(w.org.read)-1] + "?", 401},
		{"something behind", "Bearer " + w.org.read + " x", 401},
		{"unknown", "Bearer " + model.FormatKey([32]byte{1}).Reveal(), 401},
		{"revoked", "Bearer " + revoked, 401},
		{"expired", "Bearer " + expired, 401},
		{"long", "Bearer " + strings.Repeat("a", 10000), 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := request{method: "GET", path: "/databases", header: map[string]string{}}
			if test.header != "" {
				in.header["Authorization"] = test.header
			}
			if got := w.do(t, in); got.status != test.status {
				t.Errorf("%d, want %d: %s", got.status, test.status, got.text)
			}
		})
	}
}

// revoke revokes the key with the given text.
// TestRevokedBeforeTheBody: a key that is revoked while the body of its request is on its way changes nothing.
func TestRevokedBeforeTheBody(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "box")
	for path, body := range map[string]string{
		"/buckets": `{"name":"evil"}`,
		"/buckets/" + bucket.ID + "/objects?key=evil": "evil",
	} {
		key := w.key(t, w.org.organization, access.NewKey{Scopes: model.Scopes()})
		conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", path, key, len(body))
		reader := bufio.NewReader(conn)
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusContinue { // it is authenticated
			t.Fatal(res, err)
		}
		w.revoke(t, key)
		fmt.Fprint(conn, body)
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %v, %v", path, res, err)
		}
	}
	if buckets := w.buckets(t); len(buckets) != 1 || buckets[0].ObjectCount != 0 {
		t.Errorf("%+v", buckets)
	}
}

func (w *world) revoke(tb testing.TB, text string) {
	tb.Helper()
	known := &model.Call{}
	if err := w.engine.Access.Authenticate(known, text); err != nil {
		tb.Fatal(err)
	}
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization}
	if _, err := w.engine.Access.KeyRevoke(call, known.Key.ID); err != nil {
		tb.Fatal(err)
	}
}

func TestUnknownPaths(t *testing.T) {
	w := open(t)
	for _, test := range []struct{ method, path string }{
		{"GET", ""},
		{"GET", "/"},
		{"GET", "/nothing"},
		{"GET", "/databases/"},
		{"GET", "//databases"},
		{"GET", "/DATABASES"},
		{"GET", "/databases/a/b/c"},
		{"GET", "/databases/a%2Fb"},
		{"GET", "/../v1/databases"},
		{"GET", "/databases/../buckets"},
		{"PATCH", "/databases"},
		{"DELETE", "/databases"},
		{"OPTIONS", "/databases"},
		{"PUT", "/buckets"},
		{"BREW", "/buckets"},
		{"GET", "/openapi.yaml"},
		{"GET", "/docs"},
		{"GET", "/schemas/Bucket.json"},
		{"POST", "/openapi.json"},
	} {
		for _, key := range []string{"", w.org.read} {
			got := w.do(t, request{method: test.method, path: test.path, key: key})
			if got.status != 404 || got.code != string(model.CodeNotFound) {
				t.Errorf("%s %s: %d %s", test.method, test.path, got.status, got.text)
			}
		}
	}
}

// TestMethodsOfNoResource sends methods that no resource supports: they are rejected with a list of those that the
// path supports, and audited.
func TestMethodsOfNoResource(t *testing.T) {
	w := open(t)
	for _, test := range []struct{ path, allow string }{
		{"/buckets", "GET, HEAD, POST"},
		{"/buckets/bucket_x", "DELETE, GET, HEAD, PATCH"},
		{"/buckets/bucket_x/objects/a/b", "DELETE, GET, HEAD, PATCH"},
		{"/databases/db_x/allowlist", "GET, HEAD, PUT"},
		{"/openapi.json", "GET, HEAD"},
		{"/nothing", ""},
	} {
		for _, method := range []string{"TRACE", "CONNECT"} {
			got := w.do(t, request{method: method, path: test.path, key: w.org.read, header: map[string]string{"X-Echo": "secret"}})
			allow, given := got.header["Allow"]
			if got.status != 405 || got.code != string(model.CodeNotFound) || !given || strings.Join(allow, ", ") != test.allow {
				t.Errorf("%s %s: %d, allowed %q: %s", method, test.path, got.status, allow, got.text)
			}
			if strings.Contains(got.text, "secret") {
				t.Errorf("%s %s echoes the request: %s", method, test.path, got.text)
			}
		}
	}
}

// TestIsolation requests everything of one organization with the key of another, while every claim and lock on it is held:
// a request that takes one before it finds out whose the resource is would tell of it, or wait.
func TestIsolation(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "theirs")
	w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, body: "x"})
	theirs := &model.Call{}
	if err := w.engine.Access.Authenticate(theirs, w.org.read); err != nil {
		t.Fatal(err)
	}
	eve := get[wire.InvitedUser](t, w.do(t, request{method: "POST", path: "/users", key: w.org.full, body: `{"email":"theirs@example.com","role":"viewer"}`})).User
	database, trashed := w.records(t)
	waited := w.holdEverything(t, bucket.ID, database, trashed)
	for _, r := range (&handlers{}).routes() {
		path := strings.NewReplacer("{projectId}", w.org.project, "{keyId}", theirs.Key.ID, "{userId}", eve.ID, "{sessionId}", "sess_x", "{trashId}", trashed).Replace(r.path)
		if strings.HasPrefix(path, "/buckets/{id}") {
			path = strings.Replace(path, "{id}", bucket.ID, 1)
		} else {
			path = strings.Replace(path, "{id}", database, 1)
		}
		if path == r.path {
			continue // not about a single resource
		}
		if r.path == "/buckets/{id}/objects" && r.method != "GET" {
			path += "?key=k"
		}
		got := w.do(t, request{method: r.method, path: path, key: w.other.full, body: validBody(r, w.other.project)})
		if got.status != 404 || got.code != string(model.CodeNotFound) {
			t.Errorf("%s %s: %d %s", r.method, path, got.status, got.text)
		}
		if strings.Contains(got.text, "theirs") {
			t.Errorf("%s %s: tells of another organization: %s", r.method, path, got.text)
		}
		if waited() {
			t.Fatalf("%s %s waited for a lock on what is another organization's", r.method, path)
		}
	}
	for _, path := range []string{"/trash/databases/" + core.MetadataFile + "/restore", "/trash/databases/" + w.org.organization + "/restore"} {
		if got := w.do(t, request{method: "POST", path: path, key: w.other.full}); got.status != 404 {
			t.Errorf("POST %s: %d %s", path, got.status, got.text)
		}
	}
	if got := w.do(t, request{method: "POST", path: "/buckets", key: w.other.full, body: `{"project":"` + w.org.project + `","name":"mine"}`}); got.status != 404 {
		t.Errorf("a bucket in another organization's project: %d %s", got.status, got.text)
	}
	for _, path := range []string{"/buckets", "/databases"} {
		if list := get[[]struct{}](t, w.do(t, request{method: "GET", path: path, key: w.other.full})); len(list) != 0 {
			t.Errorf("GET %s shows %d of another organization", path, len(list))
		}
	}
}

// records inserts the records of a database of w.org and of one in its trash, and returns their ids.
func (w *world) records(t *testing.T) (database, trashed string) {
	t.Helper()
	c := w.engine.Core
	database, trashed = c.NewID(model.ResourceDatabase), c.NewID(model.ResourceDatabase)
	now := c.Clock()
	if err := c.Meta.Update(func(tx *meta.Tx) error {
		for _, d := range []model.Database{
			{ID: database, Name: "theirs"},
			{ID: trashed, Name: "theirs-deleted", Trash: &model.Trash{At: now, Until: now.Add(time.Hour)}},
		} {
			d.Organization, d.Project, d.Major, d.Status, d.CreatedAt = w.org.organization, w.org.project, 18, model.DatabaseAvailable, now
			if err := tx.Databases().Insert(d); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return database, trashed
}

// holdEverything holds until the test ends whatever an operation on one of the resources claims, and until somebody has
// waited for long a lock on an object "k" of each. waited reports whether that was so.
func (w *world) holdEverything(t *testing.T, ids ...string) (waited func() bool) {
	t.Helper()
	names := []string{core.MetadataFile, w.org.organization}
	for _, id := range append(ids, w.org.organization) {
		names = append(names, id+"/backup", id+"/owed", id+"/diff", id+"/scheduled", id+"/export", "upload/"+id)
	}
	for _, name := range append(names, ids...) {
		release, err := w.engine.Core.Claims.Take(name, "what the others do")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
	}
	var late atomic.Bool
	for _, id := range ids {
		release := sync.OnceFunc(w.engine.Objects.LockObject(id, "k"))
		timer := time.AfterFunc(30*time.Second, func() { late.Store(true); release() })
		t.Cleanup(func() { timer.Stop(); release() })
	}
	return late.Load
}

// validBody returns a body that passes the route's form.
func validBody(r route, project string) string {
	switch {
	case r.action == model.ActionObjectUpload:
		return "bytes"
	case r.action == model.ActionDatabaseCreate, r.action == model.ActionBucketCreate:
		return `{"project":"` + project + `","name":"name"}`
	case r.action == model.ActionProjectCreate, r.action == model.ActionProjectUpdate, r.action == model.ActionKeyUpdate:
		return `{"name":"name"}`
	case r.action == model.ActionUserInvite:
		return `{"email":"eve@example.com","role":"viewer"}`
	case r.action == model.ActionUserRole:
		return `{"role":"viewer"}`
	case r.action == model.ActionKeyCreate:
		return `{"name":"name","preset":"read_only"}`
	case r.action == model.ActionObjectUpdate:
		return `{"tags":{"a":"b"}}`
	case r.action == model.ActionUploadLink, r.action == model.ActionDownloadLink:
		return `{"key":"k"}`
	case r.action == model.ActionObjectCopy:
		return `{"key":"copy","source_key":"k"}`
	case r.action == model.ActionBucketUpdate:
		return `{"public":true}`
	case r.action == model.ActionDatabaseUpdate:
		return `{"connection_limit":null}`
	case r.action == model.ActionWebhookCreate:
		return `{"name":"hook","url":"https://hook.invalid/","events":["key.*"]}`
	case r.action == model.ActionWebhookUpdate:
		return `{"enabled":true}`
	case r.action == model.ActionImportCreate:
		return `{"project":"` + project + `","name":"name","source_url":"postgres://u:p@example.com/db"}`
	case r.action == model.ActionDatabaseRoleCreate:
		return `{"name":"name","access":"read"}`
	case r.action == model.ActionDatabaseRoleUpdate:
		return `{"access":"write"}`
	case r.action == model.ActionAllowlistSet:
		return `{"entries":["127.0.0.1"]}`
	case r.action == model.ActionStatementPlan:
		return `{"statement":"select 1"}`
	case r.action == model.ActionDatabaseUpgrade:
		return `{"version":"18","dry_run":true}`
	case r.action == model.ActionBranchCreate:
		return `{"name":"name"}`
	case r.action == model.ActionSettingsUpdate:
		return `{"settings":{"jit":null}}`
	case r.action == model.ActionExtensionSet:
		return `{"name":"hstore"}`
	case r.action == model.ActionRLSSet:
		return `{"table":"t","enabled":true}`
	case r.action == model.ActionBucketRestore:
		return `{"target_time":"2026-01-31T12:00:00Z"}`
	case r.action == model.ActionRecoveryCreate:
		return `{"target_time":"2030-01-31T12:00:00Z"}`
	case r.action == model.ActionDeviceToken:
		return `{"device_code":"x"}`
	default:
		return ""
	}
}

// TestHead: HEAD responds as GET does, without the body, and is the same operation.
func TestHead(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "asked")
	for _, path := range []string{"/buckets", "/buckets/" + bucket.ID, "/buckets/bucket_x"} {
		full := w.do(t, request{method: "GET", path: path, key: w.org.read})
		bare := w.do(t, request{method: "HEAD", path: path, key: w.org.read})
		if bare.status != full.status || bare.header.Get("Content-Length") != full.header.Get("Content-Length") || bare.header.Get("Content-Type") != full.header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d %v, GET %d %v", path, bare.status, bare.header, full.status, full.header)
		}
	}
	got := w.do(t, request{method: "HEAD", path: "/buckets", key: w.org.read})
	if e := w.entry(t, w.org.organization, got.header.Get("X-Request-Id")); e.Action != model.ActionBucketList {
		t.Errorf("audited as %s", e.Action)
	}
	if got := w.do(t, request{method: "HEAD", path: "/databases/" + nobody + "/restart", key: w.org.full}); got.status != 404 {
		t.Errorf("HEAD of what has no GET: %d", got.status)
	}
}

// TestAnnouncedBudgets: a request that draws on a budget says what is left of it.
func TestAnnouncedBudgets(t *testing.T) {
	w := start(t, func(c *core.Config) {
		c.Rates[model.RateCreateBucket] = core.Rate{Limit: 2, Window: time.Minute}
	})
	for i, left := range []string{"r=1", "r=0", "r=0"} {
		got := w.do(t, request{method: "POST", path: "/buckets", key: w.org.full, body: "{}"})
		if policy := got.header.Get("RateLimit-Policy"); policy != `"create_bucket";q=2;w=60` {
			t.Errorf("request %d: policy %q", i, policy)
		}
		state := got.header.Get("RateLimit")
		if !strings.HasPrefix(state, `"create_bucket";`+left+";t=") {
			t.Errorf("request %d: state %q", i, state)
		}
		if wait := got.header.Get("Retry-After"); got.status == 429 && !strings.HasSuffix(state, ";t="+wait) {
			t.Errorf("state %q, but Retry-After %s", state, wait)
		}
	}
	for path, want := range map[string]string{"/buckets": "", "/device/token": `"device_token";q=300;w=60`} {
		method := map[bool]string{true: "POST", false: "GET"}[want != ""]
		got := w.do(t, request{method: method, path: path, key: w.org.read, body: map[bool]string{true: "{}"}[want != ""], contentType: map[bool]string{true: "application/json"}[want != ""]})
		if policy := got.header.Get("RateLimit-Policy"); policy != want {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
}
