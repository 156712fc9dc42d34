package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
	"holdfast/server/api/apitest"
	"holdfast/server/api/wire"
)

// world is an appliance with two organizations and a real listener.
type world struct {
	engine *engine.Engine
	server *httptest.Server
	log    *syncBuffer
	// dataDir is set if PostgreSQL runs.
	dataDir string
	doc     *apitest.Description

	org, other tenant
}

// syncBuffer is a buffer that is safe for concurrent writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// tenant is an organization with keys.
type tenant struct {
	organization, project          string
	full, developer, read, careful string
}

func newConfig(tb testing.TB) core.Config {
	first, last := testenv.Ports(tb, 100)
	return core.Config{
		DataDir: tb.TempDir(), FirstPort: first, LastPort: last, Listen: []string{"127.0.0.1"}, PublicHost: "127.0.0.1",
		Allowlist: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Rates:     map[model.RateClass]core.Rate{}, MaxObjectBytes: 8 << 20,
		TrashRetention: time.Hour, ReplacedRetention: time.Hour, AuditKeep: 1 << 20, Advice: advice.Defaults(), Version: "test",
	}
}

// open creates a world without PostgreSQL: keys, buckets and objects work.
func open(tb testing.TB, change ...func(*core.Config)) *world {
	tb.Helper()
	w := &world{log: &syncBuffer{}}
	cfg := newConfig(tb)
	for _, c := range change {
		c(&cfg)
	}
	e, err := engine.Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	w.engine = e
	w.serve(tb)
	return w
}

// serve serves the engine through the API; both end with the test.
func (w *world) serve(tb testing.TB) {
	tb.Helper()
	var handler http.Handler
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	tb.Cleanup(func() {
		w.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.engine.Close(ctx); err != nil {
			tb.Errorf("close engine: %v", err)
		}
		if strings.Contains(w.log.String(), "level=ERROR") {
			tb.Errorf("errors were logged:\n%s", w.log)
		}
	})
	log := slog.New(slog.NewTextHandler(w.log, nil))
	handler = New(w.engine, Options{BaseURL: w.server.URL, Log: log})
	w.org = w.tenant(tb, "acme")
	w.other = w.tenant(tb, "globex")
	w.doc = apitest.Shared(tb, w.server.URL)
}

func (w *world) tenant(tb testing.TB, name string) tenant {
	tb.Helper()
	call := &model.Call{Operation: model.Operation{Action: model.ActionOrganizationCreate}, Actor: model.Actor{Type: model.ActorOperator}}
	org, err := w.engine.Access.OrganizationCreate(call, name)
	if err != nil {
		tb.Fatal(err)
	}
	call = &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: org.ID}
	projects, err := w.engine.Access.ProjectList(call, core.Filter{}, core.Page{})
	if err != nil {
		tb.Fatal(err)
	}
	return tenant{
		organization: org.ID, project: projects.Items[0].ID,
		full:      w.key(tb, org.ID, access.NewKey{Preset: model.PresetFullAccess, AllowDangerous: true}),
		careful:   w.key(tb, org.ID, access.NewKey{Preset: model.PresetFullAccess}),
		developer: w.key(tb, org.ID, access.NewKey{Preset: model.PresetDeveloper}),
		read:      w.key(tb, org.ID, access.NewKey{Preset: model.PresetReadOnly}),
	}
}

func (w *world) key(tb testing.TB, organization string, in access.NewKey) string {
	tb.Helper()
	in.Name, in.Source = "test "+string(cmp.Or(in.Preset, model.PresetCustom)), model.KeySourceOperator
	call := &model.Call{
		Operation: model.Operation{Action: model.ActionKeyCreate},
		Actor:     model.Actor{Type: model.ActorOperator}, Organization: organization,
	}
	secret, _, err := w.engine.Access.KeyCreate(call, in)
	if err != nil {
		tb.Fatal(err)
	}
	return secret.Reveal()
}

// request is a request to send.
type request struct {
	method, path string // path without /v1
	key          string
	body         string
	contentType  string
	header       map[string]string
	stream       io.Reader // instead of body
}

// reply is a response whose form has been checked.
type reply struct {
	status int
	header http.Header
	text   string
	data   json.RawMessage
	code   string
	msg    string
	next   *string
	more   *bool
}

// do sends a request and checks what applies to every response: the envelope, the headers, and that it conforms to
// the OpenAPI document.
func (w *world) do(tb testing.TB, in request) reply {
	tb.Helper()
	body := in.stream
	if body == nil && in.body != "" {
		body = strings.NewReader(in.body)
	}
	req, err := http.NewRequestWithContext(tb.Context(), in.method, w.server.URL+Prefix+in.path, body)
	if err != nil {
		tb.Fatal(err)
	}
	if in.key != "" {
		req.Header.Set("Authorization", "Bearer "+in.key)
	}
	if in.contentType != "" {
		req.Header.Set("Content-Type", in.contentType)
	}
	for name, value := range in.header {
		req.Header.Set(name, value)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		tb.Errorf("%s %s was answered with a redirect", in.method, in.path)
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		tb.Fatalf("%s %s: %v", in.method, in.path, err)
	}
	defer res.Body.Close()
	return w.check(tb, req, res)
}

func (w *world) check(tb testing.TB, req *http.Request, res *http.Response) reply {
	tb.Helper()
	if res.Header.Get("Content-Type") == "text/event-stream" { // it has no end
		return reply{status: res.StatusCode, header: res.Header}
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	if req.Method == http.MethodHead && len(text) == 0 || res.Header.Get("Content-Type") == auditLines {
		return reply{status: res.StatusCode, header: res.Header}
	}
	what := req.Method + " " + req.URL.RequestURI()
	var envelope struct {
		Data  json.RawMessage `json:"data"`
		Error *struct{ Code, Message string }
		Meta  *struct {
			RequestID  string   `json:"request_id"`
			NextCursor *string  `json:"next_cursor"`
			HasNext    *bool    `json:"has_next"`
			Prefixes   []string `json:"common_prefixes"`
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&envelope); err != nil {
		tb.Fatalf("%s: not the envelope: %v: %s", what, err, text)
	}
	if (envelope.Error != nil) == (envelope.Data != nil) || envelope.Meta == nil {
		tb.Fatalf("%s: not the envelope: %s", what, text)
	}
	if id := res.Header.Get("X-Request-Id"); id == "" || id != envelope.Meta.RequestID {
		tb.Errorf("%s: request id %q in the header, %q in meta", what, id, envelope.Meta.RequestID)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := res.Header.Get(name); got != want {
			tb.Errorf("%s: %s: %q, want %q", what, name, got, want)
		}
	}
	if (envelope.Error == nil) != (res.StatusCode == http.StatusOK) {
		tb.Errorf("%s: status %d with %s", what, res.StatusCode, text)
	}
	w.doc.CheckAnswer(tb, req, res, text)
	r := reply{status: res.StatusCode, header: res.Header, text: string(text), data: envelope.Data, next: envelope.Meta.NextCursor, more: envelope.Meta.HasNext}
	if envelope.Error != nil {
		r.code, r.msg = envelope.Error.Code, envelope.Error.Message
		if r.code == "" || r.msg == "" {
			tb.Errorf("%s: code or message is empty: %s", what, text)
		}
	}
	return r
}

// get decodes the data of a response that must be a success.
func get[T any](tb testing.TB, r reply) T {
	tb.Helper()
	var value T
	if r.status != http.StatusOK {
		tb.Fatalf("status %d: %s", r.status, r.text)
	}
	if err := json.Unmarshal(r.data, &value); err != nil {
		tb.Fatalf("decode %s: %v", r.data, err)
	}
	return value
}

// bucket creates a bucket of w.org.
func (w *world) bucket(tb testing.TB, name string) wire.Bucket {
	tb.Helper()
	return get[wire.Bucket](tb, w.do(tb, request{
		method: "POST", path: "/buckets", key: w.org.full, contentType: "application/json",
		body: `{"project":"` + w.org.project + `","name":"` + name + `"}`,
	}))
}
