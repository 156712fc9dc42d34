package api

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

func (w *world) makeBucket(tb testing.TB, key, once, name string) reply {
	tb.Helper()
	return w.do(tb, request{
		method: "POST", path: "/buckets", key: key, contentType: "application/json",
		header: map[string]string{gate.IdempotencyHeader: once},
		body:   `{"project":"` + w.org.project + `","name":"` + name + `"}`,
	})
}

func TestIdempotencyKey(t *testing.T) {
	w := open(t)
	first := w.makeBucket(t, w.org.full, "k1", "first")
	made := get[wire.Bucket](t, first)
	again := w.makeBucket(t, w.org.full, "k1", "first")
	if string(again.data) != string(first.data) || again.header.Get(gate.ReplayedHeader) != "true" || first.header.Get(gate.ReplayedHeader) != "" {
		t.Errorf("the first answer\n%s\nand again (%v)\n%s", first.text, again.header, again.text)
	}
	if e := w.entry(t, w.org.organization, again.header.Get("X-Request-Id")); e.Details["replayed"] != "true" {
		t.Errorf("the audit entry says %v", e.Details)
	}
	if other := w.makeBucket(t, w.org.full, "k1", "second"); other.status != http.StatusConflict || !strings.Contains(other.msg, gate.IdempotencyHeader) {
		t.Errorf("another body: %s", other.text)
	}
	// Another API key, another key, no key: the name is taken.
	for name, r := range map[string]reply{
		"another API key": w.makeBucket(t, w.org.developer, "k1", "first"),
		"another key":     w.makeBucket(t, w.org.full, "k2", "first"),
	} {
		if r.status != http.StatusConflict || !strings.Contains(r.msg, "exists already") {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	// A rejected request is not kept: once the conflict is gone the same key works.
	w.do(t, request{method: "DELETE", path: "/buckets/" + made.ID, key: w.org.full})
	if r := w.makeBucket(t, w.org.full, "k2", "first"); r.status != http.StatusOK {
		t.Errorf("after a refusal: %s", r.text)
	}
	for _, bad := range []string{strings.Repeat("x", 256), "ü"} {
		if r := w.makeBucket(t, w.org.full, bad, "third"); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.msg, gate.IdempotencyHeader) {
			t.Errorf("%q: %s", bad, r.text)
		}
	}
}

// The Idempotency-Key does not bypass the gate.
func TestIdempotencyKeyNeedsTheScopeAgain(t *testing.T) {
	w := open(t)
	secret, key, err := w.engine.Access.KeyCreate(&model.Call{Organization: w.org.organization}, newTestKey())
	if err != nil {
		t.Fatal(err)
	}
	if r := w.makeBucket(t, secret.Reveal(), "k", "first"); r.status != http.StatusOK {
		t.Fatal(r.text)
	}
	if _, err := w.engine.Access.KeyRevoke(&model.Call{Organization: w.org.organization}, key.ID); err != nil {
		t.Fatal(err)
	}
	if r := w.makeBucket(t, secret.Reveal(), "k", "first"); r.status != http.StatusUnauthorized {
		t.Errorf("the answer is given to a revoked key: %s", r.text)
	}
}

func TestIdempotencyKeyOfConcurrentCallers(t *testing.T) {
	w := open(t)
	for round := range 5 {
		var done, replayed, busy atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r := w.makeBucket(t, w.org.full, fmt.Sprintf("callers %d", round), fmt.Sprintf("callers-%d", round))
				switch {
				case r.status == http.StatusOK && r.header.Get(gate.ReplayedHeader) == "true":
					replayed.Add(1)
				case r.status == http.StatusOK:
					done.Add(1)
				case r.status == http.StatusConflict && strings.Contains(r.msg, "under way"):
					busy.Add(1)
				default:
					t.Errorf("%s", r.text)
				}
			})
		}
		all.Wait()
		if done.Load() != 1 {
			t.Errorf("it was done %d times (%d replayed, %d busy)", done.Load(), replayed.Load(), busy.Load())
		}
	}
}

// TestIdempotencyKeyOfUploads repeats uploads: the same one gets the same response and stores nothing, another one
// with the same key is rejected.
func TestIdempotencyKeyOfUploads(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "files")
	path := "/buckets/" + bucket.ID + "/objects?key=a"
	upload := func(once, body, contentType string) reply {
		return w.do(t, request{
			method: "POST", path: path, key: w.org.full, header: map[string]string{gate.IdempotencyHeader: once}, body: body, contentType: contentType,
		})
	}
	form := func(boundary, body string) (string, string) {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\nContent-Type: text/css\r\n\r\n" + body +
			"\r\n--" + boundary + "--\r\n", "multipart/form-data; boundary=" + boundary
	}
	first := upload("k1", "one", "text/plain")
	get[wire.Object](t, first)
	if got := upload("other", "between", "text/plain"); got.status != http.StatusOK || got.header.Get(gate.ReplayedHeader) != "" {
		t.Fatal(got.text)
	}
	again := upload("k1", "one", "text/plain")
	if string(again.data) != string(first.data) || again.header.Get(gate.ReplayedHeader) != "true" {
		t.Errorf("again: %s (first %s)", again.text, first.text)
	}
	current := get[wire.Object](t, w.do(t, request{method: "GET", path: "/buckets/" + bucket.ID + "/objects/a", key: w.org.full}))
	if current.SizeBytes != int64(len("between")) {
		t.Errorf("what was stored between is replaced: %+v", current)
	}
	for name, r := range map[string]reply{
		"other bytes":   upload("k1", "two", "text/plain"),
		"fewer bytes":   upload("k1", "on", "text/plain"),
		"another type":  upload("k1", "one", "text/css"),
		"no type":       upload("k1", "one", ""),
		"nothing":       upload("k1", "", "text/plain"),
		"another query": w.do(t, request{method: "POST", path: path + "b", key: w.org.full, header: map[string]string{gate.IdempotencyHeader: "k1"}, body: "one", contentType: "text/plain"}),
		"a condition":   w.do(t, request{method: "POST", path: path, key: w.org.full, header: map[string]string{gate.IdempotencyHeader: "k1", "If-None-Match": "*"}, body: "one", contentType: "text/plain"}),
	} {
		if r.status != http.StatusConflict || !strings.Contains(r.msg, gate.IdempotencyHeader) {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	// A form is the same with any boundary.
	body, contentType := form("aaa", "styled")
	formed := upload("k2", body, contentType)
	get[wire.Object](t, formed)
	body, contentType = form("bbb", "styled")
	if got := upload("k2", body, contentType); string(got.data) != string(formed.data) || got.header.Get(gate.ReplayedHeader) != "true" {
		t.Errorf("the same form: %s", got.text)
	}
	// A rejected request is not kept, and a malformed one is reported first.
	bad := map[string]string{gate.IdempotencyHeader: "k3", "X-Checksum-CRC32C": "AAAAAA=="}
	if got := w.do(t, request{method: "POST", path: path, key: w.org.full, header: bad, body: "three"}); got.status != 422 {
		t.Errorf("a wrong checksum: %s", got.text)
	}
	if got := upload("k3", "three", ""); got.status != http.StatusOK {
		t.Errorf("after a refusal: %s", got.text)
	}
	if got := w.do(t, request{method: "POST", path: strings.Replace(path, "key=a", "key=..", 1), key: w.org.full, header: map[string]string{gate.IdempotencyHeader: "k3"}, body: "x"}); got.status != 422 {
		t.Errorf("a bad name: %s", got.text)
	}
}

// Of many clients that send the same upload concurrently, one stores it.
func TestIdempotencyKeyOfUploadsAtOnce(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "files")
	var stored atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r := w.do(t, request{
				method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=a", key: w.org.full,
				header: map[string]string{gate.IdempotencyHeader: "k"}, body: strings.Repeat("x", 100_000),
			})
			if r.status == http.StatusOK && r.header.Get(gate.ReplayedHeader) == "" {
				stored.Add(1)
			} else if r.status != http.StatusOK && r.status != http.StatusConflict {
				t.Errorf("%s", r.text)
			}
		})
	}
	all.Wait()
	if stored.Load() != 1 {
		t.Errorf("it is stored %d times", stored.Load())
	}
}

func newTestKey() access.NewKey {
	return access.NewKey{Name: "test", Preset: model.PresetDeveloper, Source: model.KeySourceOperator}
}

// answered stores a response to the API key's request to a path.
func (w *world) answered(t *testing.T, apiKey, once, path, body string) {
	t.Helper()
	call := &model.Call{}
	if err := w.engine.Access.Authenticate(call, apiKey); err != nil {
		t.Fatal(err)
	}
	call.Repeatable = &model.Repeatable{Key: once, Route: "POST " + Prefix + path, Content: []byte("\n" + body)}
	if err := w.engine.Core.ClaimIdempotencyKey(call); err != nil {
		t.Fatal(err)
	}
	w.engine.Core.EndIdempotent(call, []byte(`{"first":"answer"}`))
}

// TestFormBeforeIdempotencyKey sends malformed requests with a used key for every operation that takes the header:
// each gets the error that it gets without the key. A well-formed but different request is a conflict, and the same
// request gets the first response, before any lookup.
func TestFormBeforeIdempotencyKey(t *testing.T) {
	w := open(t)
	for _, r := range (&handlers{}).routes() {
		if !takesIdempotencyKey(r.method, model.OperationFor(r.action)) || r.action == model.ActionObjectUpload {
			continue
		}
		path := pathOf(r)
		valid := validBody(r, w.org.project)
		w.answered(t, w.org.full, "used", path, valid)
		ask := func(path, body string) reply {
			return w.do(t, request{method: "POST", path: path, key: w.org.full, body: body, header: map[string]string{gate.IdempotencyHeader: "used"}})
		}
		malformedBodies := malformedBodies(r)
		if malformedBodies == nil {
			malformedBodies = map[string]string{}
		}
		malformedBodies["unknown field"] = `{"nonsense":1}`
		malformedBodies["no JSON"] = `{`
		switch r.action {
		case model.ActionDatabaseCreate, model.ActionBucketCreate:
			malformedBodies["bad name"] = `{"project":"` + w.org.project + `","name":"-"}`
		case model.ActionImportCreate:
			malformedBodies["bad source"] = `{"project":"` + w.org.project + `","name":"n","source_url":"nonsense"}`
		case model.ActionDatabaseUpgrade:
			malformedBodies["too old"] = `{"version":"14"}`
		case model.ActionStatementPlan:
			malformedBodies["neither"] = `{}`
		case model.ActionExtensionSet:
			malformedBodies["no name"] = `{"name":""}`
		case model.ActionRLSSet:
			malformedBodies["no table"] = `{"table":"","enabled":true}`
		}
		if slices.Contains(withoutFields(), r.action) {
			delete(malformedBodies, "unknown field")
			delete(malformedBodies, "no JSON")
		}
		for name, body := range malformedBodies {
			if got := ask(path, body); got.status != 422 {
				t.Errorf("%s, %s: %d %s", r.path, name, got.status, got.msg)
			}
		}
		if got := ask(path+"?nonsense=1", valid); got.status != 422 {
			t.Errorf("%s, unknown parameter: %d %s", r.path, got.status, got.msg)
		}
		if r.action == model.ActionImportCreate { // needs a pg_dump here: its absence is a fault of the form
			continue
		}
		if status, text := w.plain(t, path, valid, "used"); status != 200 || !strings.Contains(text, `{"first":"answer"}`) {
			t.Errorf("%s, the same request: %d %s", r.path, status, text)
		}
	}
}

// plain sends a request whose response is not a record of the description.
func (w *world) plain(t *testing.T, path, body, once string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.server.URL+Prefix+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.org.full)
	req.Header.Set(gate.IdempotencyHeader, once)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A replay draws on the budget like any request.
func TestReplaysDrawOnTheBudget(t *testing.T) {
	w := open(t, onceEach)
	if first := w.makeBucket(t, w.org.full, "k", "first"); first.status != 200 {
		t.Fatal(first.text)
	}
	if again := w.makeBucket(t, w.org.full, "k", "first"); again.status != 429 {
		t.Errorf("again: %s", again.text)
	}
}
