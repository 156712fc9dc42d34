package api

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// bodyRoutes returns the routes of databases and buckets that take a JSON body.
func bodyRoutes() []route {
	var found []route
	for _, r := range (&handlers{}).routes() {
		if (r.method == "POST" || r.method == "PUT") && r.action != model.ActionObjectUpload {
			found = append(found, r)
		}
	}
	return found
}

func seedBodies() []string {
	return []string{
		``, `{}`, `null`, `[]`, `"x"`, `1`, `{`, `}`, `{"":""}`, "\x00", "\xff", `{"a":1e400}`, `[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]`,
		`{"project":"proj_x","name":"shop","db_user":"app","password":"correct horse"}`,
		`{"project":"proj_x","name":"a-bucket","public":true}`,
		`{"project":"proj_x","name":"n","source_url":"postgres://u:p@h/d","same_credentials":true}`,
		`{"terminate_sessions":true}`, `{"entries":["10.0.0.0/8","::1"]}`, `{"entries":["10.0.0.1/8"]}`,
		`{"table":"t","schema":"public","enabled":true,"force":false}`, `{"mode":"in_place"}`, `{"mode":"new","name":"copy"}`,
		`{"pinned":true,"reason":"why"}`, `{"target_time":"2030-01-31T12:00:00Z","dry_run":true}`, `{"target_lsn":"0/16B3748"}`,
		`{"device_code":"x"}`, `{"client_name":"x","scope_preset":"read_only"}`,
		`{"name":"\u0000"}`, `{"name":"\ud83d"}`, `{"name":"\ud83d\ude00"}`, `{"name":"a","name":"b"}`,
	}
}

// sendBody sends a body to a route and checks what must hold for any: a response in the envelope, no server error,
// and nothing created unless it says so.
func (w *world) sendBody(t *testing.T, r route, id, body string) reply {
	t.Helper()
	path := pathOf(route{path: strings.Replace(r.path, "{id}", id, 1)})
	before := w.count(t)
	got := w.do(t, request{method: r.method, path: path, key: w.org.full, body: body, contentType: "application/json"})
	if got.status >= 500 || got.status < 200 {
		t.Errorf("%s %s %q: %d %s", r.method, path, body, got.status, got.text)
	}
	made := w.count(t) - before
	creates := r.action == model.ActionDatabaseCreate || r.action == model.ActionBucketCreate
	if want := creates && got.status == 200; (made == 1) != want || made != 0 && !want {
		t.Errorf("%s %s %q: %d, and %d resources more", r.method, path, body, got.status, made)
	}
	return got
}

// count returns the number of databases and buckets of the organization, from the engine's own records.
func (w *world) count(tb testing.TB) int {
	tb.Helper()
	usage, err := w.engine.Insight.Usage(&model.Call{Organization: w.org.organization})
	if err != nil {
		tb.Fatal(err)
	}
	return int(usage.Databases + usage.Buckets)
}

func FuzzBodies(f *testing.F) {
	w := open(f)
	routes := bodyRoutes()
	for i := range routes {
		for _, body := range seedBodies() {
			f.Add(uint8(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, body string) {
		w.sendBody(t, routes[int(i)%len(routes)], nobody, body)
	})
}

// TestRandomBodies is the fuzzer for every test run: valid bodies with random faults. Its bucket bodies name an
// existing project.
func TestRandomBodies(t *testing.T) {
	w := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	statuses := map[int]int{}
	for range 2500 {
		r := bodyRoutes()[random.IntN(len(bodyRoutes()))]
		body := randomBody(random, w.org.project)
		if r.action == model.ActionDatabaseCreate {
			body = strings.ReplaceAll(body, w.org.project, "proj_x") // there is no PostgreSQL here
		}
		statuses[w.sendBody(t, r, nobody, body).status]++
	}
	for _, status := range []int{200, 404, 409, 422} {
		if statuses[status] == 0 {
			t.Errorf("never %d: the bodies are too tame or too wild: %v", status, statuses)
		}
	}
}

// randomBody returns a JSON object with fields of the API, valid and invalid, and sometimes damages its text.
func randomBody(random *rand.Rand, project string) string {
	fields := map[string]any{}
	if random.IntN(3) > 0 {
		fields["project"], fields["name"] = project, pick(random, "shop", "a-name", "name-"+randomText(random), "x")
	}
	names := []string{
		"public", "name", "project", "db_user", "password", "entries", "table", "schema", "enabled", "force", "mode", "pinned", "reason",
		"terminate_sessions", "target_time", "target_lsn", "dry_run", "source_url", "username", "scope_preset", "device_code", "Name", "", "\x00",
	}
	for range random.IntN(3) {
		fields[names[random.IntN(len(names))]] = randomValue(random, 0)
	}
	text, _ := json.Marshal(fields)
	for range random.IntN(3) * random.IntN(2) {
		at := random.IntN(len(text))
		switch random.IntN(3) {
		case 0:
			text[at] = byte(random.IntN(256))
		case 1:
			text = append(text[:at:at], text[at+1:]...)
		default:
			text = append(text[:at:at], append([]byte(pick(random, `"`, `\`, `{`, `,`, `\u0000`, `null`)), text[at:]...)...)
		}
		if len(text) == 0 {
			break
		}
	}
	return string(text)
}

func randomValue(random *rand.Rand, depth int) any {
	switch random.IntN(9) {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return random.NormFloat64() * 1e18
	case 3:
		return random.IntN(100)
	case 4:
		if depth < 20 {
			return []any{randomValue(random, depth+1), randomValue(random, depth+1)}
		}
		return []any{}
	case 5:
		return map[string]any{randomText(random): randomValue(random, depth+1)}
	default:
		return randomText(random)
	}
}

func randomText(random *rand.Rand) string {
	return pick(random, "", "x", "in_place", "new", "public", "true", "2030-01-31T12:00:00Z", "0/1", "::1", "10.0.0.0/8", "read_only",
		"'; drop table users; --", "a\x00b", "\u2028", "🙂", "../../etc/passwd", "%s%n", strings.Repeat("y", 200), strings.Repeat("long", 20000))
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// FuzzJSON compares checkJSON with the decoder: what checkJSON accepts can be decoded.
func FuzzJSON(f *testing.F) {
	for _, body := range seedBodies() {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if checkJSON(body) != nil {
			return
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Fatalf("%q passes and does not decode: %v", body, err)
		}
		if again, err := json.Marshal(value); err == nil && strings.Contains(string(again), `\u0000`) {
			t.Fatalf("%q passes with a NUL", body)
		}
	})
}

// pathOf fills in a route's parameters with missing ids.
func pathOf(r route) string {
	return strings.NewReplacer(
		"{id}", nobody, "{backupId}", "bkp_x", "{importId}", "imp_x", "{operationId}", "op_x", "{key}", "k", "{projectId}", "proj_x", "{keyId}", "key_x", "{webhookId}", "wh_x", "{deliveryId}", "dlv_x", "{userId}", "user_x", "{sessionId}", "sess_x", "{trashId}", "none",
	).Replace(r.path)
}

// FuzzQueries sends any query to any route.
func FuzzQueries(f *testing.F) {
	w := open(f)
	routes := (&handlers{}).routes()
	for i := range routes {
		f.Add(uint8(i), "limit=1")
	}
	for i, query := range []string{
		"", "limit=1", "limit=0&limit=1", "cursor=AAAA", "cursor=" + strings.Repeat("A", 90), "page=2&limit=100", "page=9223372036854775807",
		"force=true", "key=k", "key=a&key=b", "prefix=%00", "delimiter=/&prefix=a", "delimiter=", "%zz", "a=b;c=d", "since=2026-01-01T00:00:00Z",
		"outcome=denied", "actor=%F0%9F%99%82", "action=" + strings.Repeat("x", 300), "limit=%31", "=", "&&&",
	} {
		f.Add(uint8(7*i), query)
	}
	f.Fuzz(func(t *testing.T, i uint8, query string) {
		r := routes[int(i)%len(routes)]
		target := pathOf(r) + "?" + query
		if _, err := url.ParseRequestURI(Prefix + target); err != nil || strings.ContainsAny(query, "# ") {
			t.Skip("no client can send it")
		}
		got := w.do(t, request{method: r.method, path: target, key: w.org.full, body: validBody(r, "proj_x")})
		if got.status >= 500 || got.status < 200 {
			t.Errorf("%s %s: %d %s", r.method, target, got.status, got.text)
		}
	})
}

// FuzzObjectKeys stores an object at any key, in the query, and finds it under exactly that key, in the path; or the
// key is rejected, and there is no object.
func FuzzObjectKeys(f *testing.F) {
	w := open(f)
	objects := "/buckets/" + w.bucket(f, "keys").ID + "/objects"
	for _, key := range []string{
		"a", "/a", "a/", "a//b", "a/../b", "..", ".", "a/.", "%2e%2e", "%2F", "a b", "a+b", "a?b", "a#b", "ü", "🙂", "\u2028", "a\x00b", "\xff",
		"a\\..\\b", strings.Repeat("k", 1024), strings.Repeat("k", 1025), "a;b", "~", "\u202e", " ", "\t",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		put := w.do(t, request{method: "POST", path: objects + "?key=" + url.QueryEscape(key), key: w.org.full, body: "x"})
		in := request{path: objects + "/" + url.PathEscape(key), key: w.org.full}
		if in.method = "GET"; put.status != 200 {
			if model.ValidateObjectKey("key", key) == nil || put.status != 422 {
				t.Errorf("%q: %d %s", key, put.status, put.text)
			}
			return
		}
		if o := get[wire.Object](t, w.do(t, in)); o.Key != key {
			t.Errorf("%q was put and %q is there", key, o.Key)
		}
		in.method = "DELETE"
		if got := w.do(t, in); got.status != 200 {
			t.Errorf("delete %q: %d %s", key, got.status, got.text)
		}
		if list := get[[]wire.Object](t, w.do(t, request{method: "GET", path: objects, key: w.org.full})); len(list) != 0 {
			t.Errorf("%q: %d objects are left", key, len(list))
		}
	})
}

// FuzzUploadHeaders parses any headers of a resumable upload.
func FuzzUploadHeaders(f *testing.F) {
	f.Add("3", "key YS9i,content_type aW1hZ2UvcG5n", "*")
	f.Add("-1", "filename", "")
	f.Add("9223372036854775807", "key ,key YQ==", "\"x\"")
	f.Fuzz(func(t *testing.T, length, metadata, condition string) {
		in, err := newUpload(http.Header{"Upload-Length": {length}, "Upload-Metadata": {metadata}, "If-None-Match": {condition}})
		if err != nil {
			if model.CodeOf(err) != model.CodeValidation {
				t.Errorf("%q %q %q: %v", length, metadata, condition, err)
			}
			return
		}
		if in.Length < 0 || in.Key == "" || in.IfAbsent != (condition == "*") {
			t.Errorf("%q %q %q is read as %+v", length, metadata, condition, in)
		}
	})
}
