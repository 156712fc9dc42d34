package api

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// TestFilters selects buckets and keys by each filter, alone and together, and page by page.
func TestFilters(t *testing.T) {
	w := open(t)
	call := &model.Call{Operation: model.Operation{Action: model.ActionProjectCreate}, Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization}
	other, err := w.engine.Access.ProjectCreate(call, "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		w.bucket(t, name)
	}
	split := time.Now().UTC()
	get[wire.Bucket](t, w.do(t, request{
		method: "POST", path: "/buckets", key: w.org.full, contentType: "application/json", body: `{"project":"` + other.ID + `","name":"four","public":true}`,
	}))
	after := url.QueryEscape(split.Format(time.RFC3339Nano))
	for query, want := range map[string]string{
		"":                              "four three two one",
		"name=two":                      "two",
		"name=tw":                       "",
		"name=TWO":                      "",
		"project=" + other.ID:           "four",
		"project=" + w.org.project:      "three two one",
		"project=proj_none":             "",
		"project=" + w.other.project:    "",
		"public=true":                   "four",
		"public=false":                  "three two one",
		"created_after=" + after:        "four",
		"created_before=" + after:       "three two one",
		"name=four&project=" + other.ID: "four",
		"name=four&public=false":        "",
		"name=four&created_before=2020-01-31T12:00:00Z": "",
		"created_after=2999-01-31T12:00:00Z":            "",
	} {
		if got := strings.Join(w.bucketNames(t, query), " "); got != want {
			t.Errorf("?%s: %s, want %s", query, got, want)
		}
	}
	if keys := get[[]wire.Key](t, w.do(t, request{method: "GET", path: "/account/api-keys?preset=developer&source=operator", key: w.org.read})); len(keys) != 1 {
		t.Errorf("%d keys of developers", len(keys))
	}
	w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly})
	if keys := get[[]wire.Key](t, w.do(t, request{method: "GET", path: "/account/api-keys?name=test+read_only", key: w.org.read})); len(keys) != 2 {
		t.Errorf("%d keys with the name", len(keys))
	}
	for _, r := range get[[]wire.Recommendation](t, w.do(t, request{method: "GET", path: "/agent/recommendations?severity=info", key: w.org.read})) {
		if r.Severity != wire.SeverityInfo {
			t.Errorf("%+v", r)
		}
	}
}

// bucketNames reads a list two at a time.
func (w *world) bucketNames(t *testing.T, query string) (names []string) {
	t.Helper()
	for cursor := ""; ; {
		got := w.do(t, request{method: "GET", path: "/buckets?limit=2&" + query + cursor, key: w.org.read})
		for _, b := range get[[]wire.Bucket](t, got) {
			names = append(names, b.Name)
		}
		if got.next == nil {
			return names
		}
		cursor = "&cursor=" + *got.next
	}
}

// TestBadFilters sends filters that no record can match, or that the list does not have.
func TestBadFilters(t *testing.T) {
	w := open(t)
	for path, says := range map[string]string{
		"/databases?status=alive":                    "status: must be one of",
		"/databases?type=manual":                     "type: is not a parameter here",
		"/databases?name=":                           "name: must not be empty",
		"/databases?created_after=yesterday":         "created_after: must be a time",
		"/imports?status=ready":                      "status: must be one of",
		"/buckets?public=yes":                        "public: must be true or false",
		"/account/api-keys?project=proj_1":           "project: is not a parameter here",
		"/account/api-keys?preset=all":               "preset: must be one of",
		"/agent/recommendations?severity=high":       "severity: must be one of",
		"/databases/" + nobody + "/backups?name=x":   "name: is not a parameter here",
		"/databases/" + nobody + "/backups?type=old": "type: must be one of",
		"/buckets?created_after=2030-01-31T12:00:00Z&created_before=2030-01-31T12:00:00Z": "created_before: must be after created_after",
		"/buckets?created_before=0001-01-01T00:00:00Z":                                    "created_before: must be after created_after",
	} {
		if got := w.do(t, request{method: "GET", path: path, key: w.org.read}); got.status != 422 || !strings.Contains(got.msg, says) {
			t.Errorf("%s: %d %s", path, got.status, got.msg)
		}
	}
	for _, query := range []string{"name=a", "project=p", "created_after=2030-01-31T12:00:00Z", "status=failed"} {
		if got := w.do(t, request{method: "GET", path: "/databases?" + query, key: w.org.read}); got.status != 200 || string(got.data) != "[]" {
			t.Errorf("%s: %d %s", query, got.status, got.text)
		}
	}
}

// A cursor of a list with a filter is not one of the list with another.
func TestCursorsOfFilters(t *testing.T) {
	w := open(t)
	for _, name := range []string{"one", "two", "three"} {
		w.bucket(t, name)
	}
	queries := []string{"", "public=false&", "project=" + w.org.project + "&", "created_before=2999-01-31T12:00:00Z&"}
	var cursors []string
	for _, query := range queries {
		got := w.do(t, request{method: "GET", path: "/buckets?limit=1&" + query, key: w.org.read})
		if got.next == nil {
			t.Fatalf("%s: %s", query, got.text)
		}
		cursors = append(cursors, *got.next)
	}
	for _, query := range queries {
		for i, cursor := range cursors {
			got := w.do(t, request{method: "GET", path: "/buckets?" + query + "cursor=" + cursor, key: w.org.read})
			if own := slices.Index(queries, query) == i; own != (got.status == 200) {
				t.Errorf("%q with a cursor of %q: %d", query, queries[i], got.status)
			}
		}
	}
}

// TestFiltersOfTheTrash selects what was deleted, webhooks and their deliveries.
func TestFiltersOfTheTrash(t *testing.T) {
	w := open(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	ask := func(method, path, body string) reply {
		in := request{method: method, path: path, key: w.org.full, body: body}
		if strings.HasPrefix(body, "{") {
			in.contentType = "application/json"
		}
		return w.do(t, in)
	}
	files, other := w.bucket(t, "files"), w.bucket(t, "other")
	for _, key := range []string{"a%2F1", "a%2F2", "b%2F1"} {
		get[wire.Object](t, ask("POST", "/buckets/"+files.ID+"/objects?key="+key, "bytes"))
		get[wire.DeletedObject](t, ask("DELETE", "/buckets/"+files.ID+"/objects?key="+key, ""))
	}
	get[wire.DeletedResource](t, ask("DELETE", "/buckets/"+other.ID, ""))
	hook := get[wire.WebhookSecret](t, ask("POST", "/webhooks", `{"name":"pager","url":"https://hook.invalid/","events":["key.*"]}`))
	get[wire.WebhookSecret](t, ask("POST", "/webhooks", `{"name":"log","url":"https://hook.invalid/","events":["key.*"]}`))
	get[wire.Delivery](t, ask("POST", "/webhooks/"+hook.ID+"/ping", ""))
	for path, want := range map[string]int{
		"/trash/objects": 3, "/trash/objects?prefix=a%2F": 2, "/trash/objects?prefix=a%2F&bucket_id=" + files.ID: 2,
		"/trash/objects?bucket_id=" + other.ID: 0, "/trash/objects?deleted_before=2020-01-31T12:00:00Z": 0, "/trash/objects?deleted_after=2020-01-31T12:00:00Z": 3,
		"/trash/buckets?name=other": 1, "/trash/buckets?name=files": 0, "/trash/buckets?project=" + w.org.project: 1, "/trash/buckets?project=none": 0,
		"/trash/buckets?deleted_after=2999-01-31T12:00:00Z": 0, "/trash/databases?name=other": 0,
		"/webhooks": 2, "/webhooks?name=log": 1, "/webhooks?created_before=2020-01-31T12:00:00Z": 0,
		"/webhooks/" + hook.ID + "/deliveries?type=*": 1, "/webhooks/" + hook.ID + "/deliveries?type=key.*": 0,
		"/webhooks/" + hook.ID + "/deliveries?created_after=2999-01-31T12:00:00Z": 0, "/sessions?created_after=2020-01-31T12:00:00Z": 0,
	} {
		if got := get[[]any](t, ask("GET", path, "")); len(got) != want {
			t.Errorf("%s: %d, want %d", path, len(got), want)
		}
	}
	for path, says := range map[string]string{
		"/trash/objects?deleted_after=2021-01-31T12:00:00Z&deleted_before=2020-01-31T12:00:00Z": "deleted_before", "/trash/buckets?name=": "name",
		"/webhooks/" + hook.ID + "/deliveries?type=nothing": "type",
	} {
		if got := ask("GET", path, ""); got.status != 422 || !strings.Contains(got.msg, says) {
			t.Errorf("%s: %s", path, got.text)
		}
	}
}
