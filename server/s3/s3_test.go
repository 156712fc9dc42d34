package s3

import (
	"bytes"
	"context"
	"log/slog"
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
)

// world is an appliance with two organizations and an S3 endpoint.
type world struct {
	engine *engine.Engine
	server *httptest.Server
	dir    string

	org, other tenant
}

// credentials are an access key and its secret.
type credentials struct{ id, secret string }

// tenant is an organization with keys.
type tenant struct {
	id                          string
	full, developer, read, none credentials
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

func open(t testing.TB, change ...func(*core.Config)) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	log := &syncBuffer{}
	cfg := core.Config{
		DataDir: w.dir, FirstPort: 10000, LastPort: 10500, Listen: []string{"127.0.0.1"}, PublicHost: "127.0.0.1",
		Allowlist: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rates: map[model.RateClass]core.Rate{},
		MaxObjectBytes: 1 << 30, AuditKeep: 1 << 20, Advice: advice.Defaults(), Version: "test",
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if w.engine, err = engine.Open(cfg); err != nil {
		t.Fatal(err)
	}
	endpoint := New(w.engine, Options{URL: "http://s3.test", WebsiteURL: "http://web.test", Log: cfg.Log})
	w.server = httptest.NewServer(endpoint)
	t.Cleanup(func() {
		w.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.engine.Close(ctx); err != nil {
			t.Errorf("close engine: %v", err)
		}
		if strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("errors were logged:\n%s", log)
		}
	})
	w.org, w.other = w.tenant(t, "acme"), w.tenant(t, "globex")
	return w
}

func (w *world) tenant(t testing.TB, name string) (out tenant) {
	t.Helper()
	call := &model.Call{Operation: model.Operation{Action: model.ActionOrganizationCreate}, Actor: model.Actor{Type: model.ActorOperator}}
	org, err := w.engine.Access.OrganizationCreate(call, name)
	if err != nil {
		t.Fatal(err)
	}
	out.id = org.ID
	for to, in := range map[*credentials]access.NewKey{
		&out.full:      {Preset: model.PresetFullAccess, AllowDangerous: true},
		&out.developer: {Preset: model.PresetDeveloper},
		&out.read:      {Preset: model.PresetReadOnly},
		&out.none:      {Scopes: []model.Scope{model.ScopeDatabaseRead}},
	} {
		in.Name, in.Source = "test", model.KeySourceOperator
		*to = w.key(t, org.ID, in)
	}
	return out
}

func (w *world) key(t testing.TB, organization string, in access.NewKey) credentials {
	t.Helper()
	call := &model.Call{Operation: model.Operation{Action: model.ActionKeyCreate}, Actor: model.Actor{Type: model.ActorOperator}, Organization: organization}
	_, key, err := w.engine.Access.KeyCreate(call, in)
	if err != nil {
		t.Fatal(err)
	}
	return credentials{key.ID, w.engine.Access.S3Secret(key.ID).Reveal()}
}
