package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

const secret = "s3cret-do-not-show"

// TestBodies sends malformed bodies: each is a 422 whose message names the field and never includes a value.
func TestBodies(t *testing.T) {
	w := open(t)
	project := w.org.project
	for _, test := range []struct {
		name, path, contentType, body string
		names                         string // required text of the message
	}{
		{"missing", "/databases", "", "", "body: must be a JSON object; the fields are db_user, logical_replication, name, password, project"},
		{"white space", "/databases", "", " \n", "body"},
		{"not JSON", "/databases", "", secret, "body: must be one JSON object"},
		{"cut off", "/databases", "", `{"password":"` + secret, "body: must be one JSON object"},
		{"two values", "/databases", "", `{} {"password":"` + secret + `"}`, "body: must be one JSON object"},
		{"an array", "/databases", "", `["` + secret + `"]`, "body: must be a JSON object"},
		{"null", "/databases", "", `null`, "body: must be a JSON object"},
		{"null for an optional body", "/databases/" + nobody + "/restart", "", `null`, "body: must be a JSON object"},
		{"a string", "/databases", "", `"` + secret + `"`, "body: must be a JSON object"},
		{"form encoding", "/databases", "application/x-www-form-urlencoded", "password=" + secret, "Content-Type: must be application/json"},
		{"wrong type", "/databases", "text/json", `{}`, "Content-Type: must be application/json"},
		{"plus json", "/databases", "application/x+json", `{}`, "Content-Type: must be application/json"},
		{"malformed type", "/databases", "application/json;", `{"password":"` + secret + `"}`, "is required"},
		{"missing field", "/databases", "", `{"name":"` + secret + `"}`, "project: is required"},
		{"unknown field", "/databases", "", `{"project":"p","name":"n","passwd":"` + secret + `"}`, "passwd: is not a field here; the fields are db_user"},
		{"field in upper case", "/databases", "", `{"project":"p","NAME":"n"}`, "NAME: is not a field here"},
		{"field given twice", "/databases", "", `{"project":"p","name":"a","name":"` + secret + `"}`, "name: is given twice"},
		{"field given twice, escaped", "/databases", "", `{"project":"p","name":"a","n\u0061me":"b"}`, "name: is given twice"},
		{"wrong kind", "/databases", "", `{"project":"p","name":{"a":"` + secret + `"}}`, "name: must be a string"},
		{"null for a required field", "/databases", "", `{"project":"p","name":null}`, "name: must be a string"},
		{"short password", "/databases", "", `{"project":"p","name":"n","password":"s3cret"}`, "password: must have at least 12 characters"},
		{"empty password", "/databases", "", `{"project":"p","name":"n","password":""}`, "password: must have at least 12 characters"},
		{"common password", "/databases", "", `{"project":"p","name":"n","password":"sunshine1234"}`, "password: is easy to guess"},
		{"the database's name as password", "/databases", "", `{"project":"p","name":"warehouse","password":"warehouse-warehouse"}`, "password: is easy to guess"},
		{"common password for an import", "/imports", "", `{"project":"p","name":"n","source_url":"postgres://u@h/d","password":"sunshine1234"}`, "password: is easy to guess"},
		{"unprintable password", "/databases", "", `{"project":"p","name":"n","password":"` + secret + `\n"}`, "password: must have printable characters"},
		{"empty user", "/databases", "", `{"project":"p","name":"n","db_user":""}`, "db_user: must have at least 1 characters"},
		{"reserved user", "/databases", "", `{"project":"p","name":"n","db_user":"postgres"}`, "db_user"},
		{"name", "/databases", "", `{"project":"p","name":"1"}`, "name: must begin with a letter"},
		{"long project", "/databases", "", `{"project":"` + strings.Repeat("p", 65) + `","name":"n"}`, "project: must have at most 64 characters"},
		{"NUL", "/databases", "", `{"project":"p","name":"n","password":"` + secret + `\u0000"}`, "body: must not have NUL"},
		{"half a surrogate pair", "/databases", "", `{"project":"p","name":"n","password":"` + secret + `\ud800"}`, "body: must not have halves"},
		{"the other half", "/databases", "", `{"project":"p","name":"n","password":"` + secret + `\udc00\ud800"}`, "body: must not have halves"},
		{"not UTF-8", "/databases", "", "{\"project\":\"p\",\"name\":\"\xff\"}", "body: must be UTF-8"},
		{"byte order mark", "/databases", "", "\ufeff{}", "body: must be one JSON object"},
		{"deep", "/databases", "", strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20), "body: must not nest deeper"},
		{"very deep", "/databases", "", strings.Repeat("[", 200000), "body: must be one JSON object"},
		{"a boolean as text", "/buckets", "", `{"project":"p","name":"n","public":"` + secret + `"}`, "public: must be true or false"},
		{"a boolean as number", "/buckets", "", `{"project":"p","name":"n","public":1}`, "public: must be true or false"},
		{"large number", "/buckets", "", `{"project":1e999,"name":"n"}`, "body"},
		{"bucket name", "/buckets", "", `{"project":"p","name":"N"}`, "name: must have 3 to 63"},
		{"several faults", "/buckets", "", `{"public":3,"x":1}`, "name: is required; project: is required; public: must be true or false; x: is not a field here"},
		{"fields where there are none", "/databases/" + nobody + "/restart", "", `{"force":true}`, "force: is not a field here; there are none"},
		{"terminate", "/databases/" + nobody + "/rotate-password", "", `{"terminate_sessions":"yes"}`, "terminate_sessions: must be true or false"},
		{"mode", "/databases/" + nobody + "/backups/b/restore", "", `{"mode":"` + secret + `"}`, "mode: must be one of in_place, new"},
		{"name in place", "/databases/" + nobody + "/backups/b/restore", "", `{"name":"n"}`, "name: only goes with the mode new"},
		{"no target", "/databases/" + nobody + "/recovery/restore-request", "", `{}`, "target_time"},
		{"two targets", "/databases/" + nobody + "/recovery/restore-request", "", `{"target_time":"2030-01-31T12:00:00Z","target_lsn":"0/1"}`, "target_time"},
		{"time", "/databases/" + nobody + "/recovery/restore-request", "", `{"target_time":"` + secret + `"}`, "target_time: must be a time such as"},
		{"LSN", "/databases/" + nobody + "/recovery/restore-request", "", `{"target_lsn":"` + secret + `"}`, "target_lsn: must be a position such as 0/1A2B3C4D"},
		{"device code", "/device/token", "", `{"device_code":""}`, "device_code: must have at least 1 characters"},
		{"preset", "/device/authorize", "", `{"scope_preset":"` + secret + `"}`, "scope_preset: must be one of read_only, developer, full_access"},
		{"source", "/imports", "", `{"project":"` + project + `","name":"n","source_url":5}`, "source_url: must be a string"},
		{"unknown name like a secret", "/buckets", "", `{"project":"p","name":"n","\u0007` + strings.Repeat("x", 500) + `":1}`, `"\axxx`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := w.do(t, request{method: "POST", path: test.path, key: w.org.full, contentType: test.contentType, body: test.body})
			if got.status != 422 || got.code != string(model.CodeValidation) {
				t.Fatalf("%d %s", got.status, got.text)
			}
			if !strings.Contains(got.msg, test.names) {
				t.Errorf("message %q lacks %q", got.msg, test.names)
			}
			if strings.Contains(got.msg, "s3cret") || len(got.msg) > 500 {
				t.Errorf("message %q tells too much", got.msg)
			}
		})
	}
}

// TestLargeBody sends a body above the limit.
func TestLargeBody(t *testing.T) {
	w := open(t)
	body := `{"name":"` + strings.Repeat("a", 1<<20) + `"}`
	got := w.do(t, request{method: "POST", path: "/databases", key: w.org.full, body: body})
	if got.status != 413 || got.code != string(model.CodeValidation) || !strings.Contains(got.msg, "body: must have at most 1048576 bytes") {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// TestManyNames sends bodies of which huma would explain each value: strangers may send little, and no one many values.
func TestManyNames(t *testing.T) {
	w := open(t)
	names := func(n int) string {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, `,"%d":0`, i)
		}
		return "{" + body.String()[1:] + "}"
	}
	for path, limit := range map[string]string{"/device/token": "8192 bytes", "/device/authorize": "8192 bytes", "/buckets": "10000 values"} {
		got := w.do(t, request{method: "POST", path: path, key: w.org.full, body: names(90_000)})
		if (got.status != 413 && got.status != 422) || !strings.Contains(got.msg, "body: must have at most "+limit) {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
		if got := w.do(t, request{method: "POST", path: path, key: w.org.full, body: names(500)}); !strings.Contains(got.msg, "is not a field here") {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}
	list := `{"entries":[1` + strings.Repeat(",1", 20_000) + `]}`
	got := w.do(t, request{method: "PUT", path: "/databases/" + nobody + "/allowlist", key: w.org.full, body: list})
	if got.status != 422 || !strings.Contains(got.msg, "body: must have at most 10000 values") {
		t.Errorf("an array: %d %s", got.status, got.text)
	}
}

func TestAllowlistBodies(t *testing.T) {
	w := open(t)
	for body, names := range map[string]string{
		"":                           "body: must be a JSON object",
		`{}`:                         "entries: is required",
		`{"entries":null}`:           "entries: must be an array",
		`{"entries":"::"}`:           "entries: must be an array",
		`{"entries":[1]}`:            "entries[0]: must be a string",
		`{"entries":[null]}`:         "entries[0]: must be a string",
		`{"entries":["host"]}`:       `entries: "host" is neither`,
		`{"entries":["10.0.0.1/8"]}`: `"10.0.0.1/8" has bits set`,
		`{"entries":["` + strings.Repeat("1", 65) + `"]}`:          "entries[0]: must have at most 64 characters",
		`{"entries":[` + strings.Repeat(`"::1",`, 200) + `"::1"]}`: "entries: must have at most 200 entries",
	} {
		got := w.do(t, request{method: "PUT", path: "/databases/" + nobody + "/allowlist", key: w.org.full, body: body})
		if got.status != 422 || !strings.Contains(got.msg, names) {
			t.Errorf("%.40s: %d %s, want %q", body, got.status, got.msg, names)
		}
	}
}

// TestOptionalBodies sends every form of an absent body.
func TestOptionalBodies(t *testing.T) {
	w := open(t)
	for path, status := range map[string]int{
		"/databases/" + nobody + "/restart":           404,
		"/databases/" + nobody + "/rotate-password":   404,
		"/databases/" + nobody + "/backups":           404,
		"/databases/" + nobody + "/backups/b/restore": 404,
		"/databases/" + nobody + "/backups/b/pin":     404,
		"/databases/" + nobody + "/recovery/undo":     404,
		"/device/authorize":                           200,
	} {
		for _, in := range []request{
			{},
			{contentType: "application/x-www-form-urlencoded"}, // curl -d ''
			{body: "{}"},
			{body: "{}", contentType: "application/json"},
			{body: " {\n} ", contentType: "Application/JSON; charset=utf-8"},
		} {
			in.method, in.path, in.key = "POST", path, w.org.full
			if got := w.do(t, in); got.status != status {
				t.Errorf("POST %s %q %q: %d %s", path, in.contentType, in.body, got.status, got.text)
			}
		}
	}
	null := `{"project":"` + w.org.project + `","name":"nulls","public":null}`
	if got := w.do(t, request{method: "POST", path: "/buckets", key: w.org.full, body: null}); got.status != 200 {
		t.Errorf("null for an optional field: %d %s", got.status, got.text)
	}
	if got := w.do(t, request{method: "GET", path: "/buckets", key: w.org.full, body: "ignored"}); got.status != 200 {
		t.Errorf("GET with a body: %d %s", got.status, got.text)
	}
}

func TestQueries(t *testing.T) {
	w := open(t)
	for _, test := range []struct {
		path   string
		status int
		names  string
	}{
		{"/buckets", 200, ""},
		{"/buckets?", 200, ""},
		{"/buckets?limit=1", 200, ""},
		{"/buckets?limit=100", 200, ""},
		{"/buckets?cursor=", 200, ""},
		{"/buckets?limit=0", 422, "limit: must be at least 1"},
		{"/buckets?limit=-1", 422, "limit: must be at least 1"},
		{"/buckets?limit=101", 422, "limit: must be at most 100"},
		{"/buckets?limit=1.5", 422, "limit: must be a whole number"},
		{"/buckets?limit=9999999999999999999999", 422, "limit: must be a whole number"},
		{"/buckets?limit=", 422, "limit: must not be empty"},
		{"/buckets?limit", 422, "limit: must not be empty"},
		{"/buckets?limit=1&limit=2", 422, "limit: is given twice"},
		{"/buckets?Limit=1", 422, "Limit: is not a parameter here; the parameters are limit, cursor, project, name"},
		{"/buckets?limit=1;x=2", 422, "query: is not well-formed"},
		{"/buckets?limit=%zz", 422, "query: is not well-formed"},
		{"/buckets?page=1", 422, "page: is not a parameter here"},
		{"/buckets?" + strings.Repeat("x", 300) + "=1", 422, "xxx…: is not a parameter here"},
		{"/buckets?cursor=%21", 422, "cursor"},
		{"/buckets?cursor=" + strings.Repeat("A", 300), 422, "cursor: must have at most 256 characters"},
		{"/account/usage?limit=1", 422, "limit: is not a parameter here; there are none"},
		{"/account/audit-logs?page=0", 422, "page: must be at least 1"},
		{"/account/audit-logs?page=10000000000", 422, "page: must be at most"},
		{"/account/audit-logs?since=2030-01-31", 422, "since: must be a time such as 2030-01-31T12:00:00Z"},
		{"/account/audit-logs?until=" + secret, 422, "until: must be a time such as 2030-01-31T12:00:00Z"},
		{"/account/audit-logs?cursor=a", 422, "cursor: is not a parameter here"},
		{"/databases/" + strings.Repeat("x", 5000), 404, "no database"},
		{"/databases/" + strings.Repeat("x", 5000) + "?x=1", 422, "x: is not a parameter here"},
	} {
		got := w.do(t, request{method: "GET", path: test.path, key: w.org.full})
		if got.status != test.status || !strings.Contains(got.msg, test.names) {
			t.Errorf("GET %.60s: %d %s, want %d %q", test.path, got.status, got.msg, test.status, test.names)
		}
	}
}

// TestWholeNumbers sends a number in every JSON spelling: equal numbers are accepted, and invalid ones are rejected
// with an explanation.
func TestWholeNumbers(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "files")
	for number, refused := range map[string]string{
		"100":                  "",
		"1e2":                  "",
		"1E+2":                 "",
		"100.0":                "",
		"1000e-1":              "",
		"1.5":                  "expire_after_days: must be a whole number",
		"1e-2":                 "expire_after_days: must be a whole number",
		`"100"`:                "expire_after_days: must be a whole number",
		"-1":                   "expire_after_days: must be at least 0",
		"36501":                "expire_after_days: must be at most 36500",
		"1e30":                 "expire_after_days: must be at most 36500",
		"99999999999999999999": "expire_after_days: must be at most 36500",
	} {
		got := w.do(t, request{
			method: "PATCH", path: "/buckets/" + bucket.ID, key: w.org.full, body: `{"expire_after_days":` + number + `}`,
		})
		if refused != "" && (got.status != 422 || got.msg != refused) ||
			refused == "" && (got.status != 200 || !strings.Contains(got.text, `"expire_after_days":100,`)) {
			t.Errorf("%s: %d %s", number, got.status, got.text)
		}
	}
}

// TestCursors sends invalid cursors, and those of other lists: each would skip unseen entries.
func TestCursors(t *testing.T) {
	w := open(t)
	bucket, other := w.bucket(t, "one"), w.bucket(t, "two")
	for _, b := range []wire.Bucket{bucket, other} {
		for _, key := range []string{"a/1", "a/2", "b", "c/1"} {
			w.put(t, b.ID, key, "x")
		}
	}
	objects := "/buckets/" + bucket.ID + "/objects"
	lists := []string{
		"/buckets?", "/account/api-keys?", "/agent/recommendations?", objects + "?", objects + "?prefix=a/&", objects + "?delimiter=/&",
		objects + "?delimiter=b&", "/buckets/" + other.ID + "/objects?",
	}
	cursors := map[string]string{} // by the list that returned them
	for _, path := range lists {
		got := w.do(t, request{method: "GET", path: path + "limit=1", key: w.org.read})
		if got.status != 200 || got.next == nil {
			t.Fatalf("%s: %d %s", path, got.status, got.text)
		}
		cursors[path] = *got.next
	}
	for _, path := range append(lists, "/databases?", "/imports?", "/databases/"+nobody+"/backups?") {
		for from, cursor := range cursors {
			got := w.do(t, request{method: "GET", path: path + "cursor=" + cursor, key: w.org.read})
			if own := from == path; own != (got.status == 200) || !own && (got.status != 422 || !strings.HasPrefix(got.msg, "cursor: ")) {
				t.Errorf("%s with a cursor of %s: %d %s", path, from, got.status, got.text)
			}
		}
		for _, cursor := range []string{"AAAA", "AAAAAAAAAAA", "YQ", "b", "aWQ_", strings.Repeat("A", 256)} {
			if got := w.do(t, request{method: "GET", path: path + "cursor=" + cursor, key: w.org.read}); got.status != 422 {
				t.Errorf("%s with %s: %d %s", path, cursor, got.status, got.text)
			}
		}
	}
	if got := w.do(t, request{method: "GET", path: "/buckets?cursor=" + cursors["/buckets?"], key: w.other.read}); got.status != 422 {
		t.Errorf("another organization's cursor: %d %s", got.status, got.text)
	}
}

// Only the first of two values would be read.
func TestHeadersGivenTwice(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Content-Type", "If-None-Match", "X-Checksum-SHA256", "X-Checksum-CRC32C", "Content-Encoding", "Upload-Offset"} {
		header := http.Header{}
		header.Add(name, "identity")
		if err := checkHeaders(header); err != nil {
			t.Errorf("%s once: %v", name, err)
		}
		header.Add(name, "gzip")
		if err := checkHeaders(header); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "is given twice") {
			t.Errorf("%s twice: %v", name, err)
		}
	}
}
