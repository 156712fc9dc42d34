package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// fakeAppliance responds as specified in states that a real appliance has only
// briefly: a login that is not yet approved, an import half done.
type fakeAppliance struct {
	key string

	mu      sync.Mutex
	answers []string // to polls of the device token or of the import
}

// next returns the next response; the last one repeats.
func (f *fakeAppliance) next() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	return answer
}

// ServeHTTP implements http.Handler.
func (f *fakeAppliance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := r.Method + " " + r.URL.Path
	device := route == "POST /v1/device/authorize" || route == "POST /v1/device/token"
	if !device && r.Header.Get("Authorization") != "Bearer "+f.key {
		f.refuse(w, http.StatusUnauthorized, "unauthorized")
		return
	}
	switch route {
	case "POST /v1/device/authorize":
		var in struct {
			ClientName  string `json:"client_name"`
			ScopePreset string `json:"scope_preset"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		page := "http://" + r.Host + "/device"
		if in.ClientName == "evil" {
			page = "file:///etc/passwd"
		}
		f.answer(w, map[string]any{
			"device_code": "d-" + in.ScopePreset, "user_code": "WDJB-MJHT", "verification_uri": page,
			"verification_uri_complete": page + "?user_code=WDJB-MJHT", "expires_in": 30, "interval": 1,
		})
	case "POST /v1/device/token":
		if code := f.next(); code != "key" {
			f.refuse(w, http.StatusBadRequest, code)
			return
		}
		f.answer(w, map[string]any{"api_key": f.key, "key": map[string]any{"id": "key_01k6zv7r9pxa3c5n8m2q4t6w8y"}})
	case "GET /v1/agent/status":
		f.answer(w, map[string]any{
			"organization": map[string]any{"id": "org_1", "name": "acme"},
			"projects":     []any{map[string]any{"id": "proj_01k6zv7r9pxa3c5n8m2q4t6w8y", "name": "default"}},
			"key":          map[string]any{"scopes": []string{"database:read"}},
		})
	case "GET /v1/agent/recommendations":
		f.answer(w, f.outdated(r.URL.Query().Get("code")))
	case "POST /v1/databases/db_shop/restart", "POST /v1/databases/db_ledger/restart":
		if status := f.next(); status != "available" {
			f.refuse(w, http.StatusConflict, "conflict")
			return
		}
		f.answer(w, map[string]any{"id": r.URL.Path, "name": strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/databases/db_"), "/restart"), "status": "available"})
	case "POST /v1/imports":
		f.startImport(w, r)
	case "GET /v1/imports":
		found := []any{}
		if name := r.URL.Query().Get("name"); name == "" || name == "shop" {
			found = append(found, f.importRecord("copying"))
		}
		f.answer(w, found)
	case "GET /v1/operations":
		f.answer(w, []any{map[string]any{"id": "op_1", "type": "import", "status": "running", "started_at": "2026-01-02T03:04:05Z"}})
	case "GET /v1/operations/op_1/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for _, status := range []string{"running", "completed"} { // of the import, only its record tells
			fmt.Fprintf(w, "event: operation\ndata: {\"id\":\"op_1\",\"status\":%q,\"progress_percent\":40,\"phase\":\"copying \\u001b[31mred\"}\n\n", status)
		}
	case "GET /v1/imports/imp_01k6zv7r9pxa3c5n8m2q4t6w8y":
		f.answer(w, f.importRecord(f.next()))
	case "POST /v1/imports/imp_01k6zv7r9pxa3c5n8m2q4t6w8y/cutover":
		record := f.importRecord("following")
		record["status"], record["following"].(map[string]any)["pause_seconds"] = "completed", 1.25
		f.answer(w, record)
	default:
		f.refuse(w, http.StatusNotFound, "not_found")
	}
}

// outdated returns the advice about two databases with an older minor version.
func (f *fakeAppliance) outdated(code string) []any {
	advice := []any{}
	for _, name := range []string{"shop", "ledger"} {
		if code == "postgres_minor_outdated" {
			advice = append(advice, map[string]any{"code": code, "resource": map[string]any{"type": "database", "id": "db_" + name, "name": name}})
		}
	}
	return advice
}

// startImport accepts one source, and explains the refusal of any other.
func (f *fakeAppliance) startImport(w http.ResponseWriter, r *http.Request) {
	var in struct {
		SourceURL string `json:"source_url"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if in.SourceURL != "postgres://ada:p%40ss@old.example.com/shop" {
		f.refuse(w, http.StatusUnprocessableEntity, "validation_error")
		return
	}
	f.answer(w, f.importRecord("pending"))
}

func (f *fakeAppliance) importRecord(status string) map[string]any {
	record := map[string]any{
		"id": "imp_01k6zv7r9pxa3c5n8m2q4t6w8y", "database_id": "db_01k6zv7r9pxa3c5n8m2q4t6w8y", "name": "shop",
		"project": "proj_01k6zv7r9pxa3c5n8m2q4t6w8y", "status": status, "phase": "copying tables", "progress_percent": 40,
		"source": map[string]any{"host": "old.example.com", "port": 5432, "database": "shop", "user": "ada"},
		"tables": map[string]any{"total": 5, "done": 2}, "started_at": "2026-01-02T03:04:05Z",
		"log": []any{map[string]any{"at": "2026-01-02T03:04:05Z", "level": "info", "message": "began \x1b[31mred"}},
	}
	switch status {
	case "following":
		record["mode"] = "follow"
		record["following"] = map[string]any{
			"publication": "everything", "slot": "holdfast_imp_1", "lag_bytes": 2048, "lag_seconds": 3, "retained_bytes": 16777216,
			"not_followed": []string{"2 sequences: carried over at the cutover"}, "trouble": "the source does not answer",
			"stale_views": []any{map[string]any{"name": "public.totals", "since": "2026-01-02T03:04:05Z", "message": "division by \x1b[31mzero"}},
		}
	case "failed":
		record["error"] = "the source refuses the password"
	case "completed_with_errors":
		record["roles_left_out"] = []any{map[string]any{"name": "reporting", "grants": 3}}
		record["errors"] = []any{map[string]any{"object": "TABLE public.orders", "sqlstate": "42501", "message": "permission denied"}}
	}
	return record
}

func (f *fakeAppliance) answer(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "meta": map[string]any{"request_id": "req_1"}})
}

func (f *fakeAppliance) refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%q,"message":"the answer is %s"},"meta":{"request_id":"req_1"}}`, code, code)
}
