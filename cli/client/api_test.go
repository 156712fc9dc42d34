package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/cli/client"
	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api"
)

// appliance is the API without PostgreSQL: buckets, objects, keys and the audit
// log work.
type appliance struct {
	url, project string
	key          string // has all privileges
}

func newAppliance(t *testing.T) appliance {
	t.Helper()
	e, a, err := openEngine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(func() {
		server.Close()
		if err := closeEngine(e); err != nil {
			t.Error(err)
		}
	})
	handler = api.New(e, api.Options{BaseURL: server.URL})
	a.url = server.URL
	return a
}

// openEngine opens an engine with an organization, its first project and a key.
// The returned appliance has no URL yet.
func openEngine(dir string) (_ *engine.Engine, a appliance, err error) {
	e, err := engine.Open(core.Config{
		DataDir: dir, FirstPort: 10000, LastPort: 10010, Listen: []string{"127.0.0.1"}, PublicHost: "127.0.0.1",
		Rates:          map[model.RateClass]core.Rate{model.RateCreateBucket: {Limit: 2, Window: time.Hour}},
		MaxObjectBytes: 1 << 20, TrashRetention: time.Hour, ReplacedRetention: time.Hour, AuditKeep: 1 << 20, Version: "test",
	})
	if err != nil {
		return nil, a, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeEngine(e))
		}
	}()
	operator := model.Actor{Type: model.ActorOperator}
	org, err := e.Access.OrganizationCreate(&model.Call{Operation: model.Operation{Action: model.ActionOrganizationCreate}, Actor: operator}, "acme")
	if err != nil {
		return nil, a, err
	}
	call := &model.Call{Operation: model.Operation{Action: model.ActionKeyCreate}, Actor: operator, Organization: org.ID}
	key, _, err := e.Access.KeyCreate(call, access.NewKey{
		Name: "test", Preset: model.PresetFullAccess, AllowDangerous: true, Source: model.KeySourceOperator,
	})
	if err != nil {
		return nil, a, err
	}
	projects, err := e.Access.ProjectList(call, core.Filter{}, core.Page{})
	if err != nil {
		return nil, a, err
	}
	return e, appliance{project: projects.Items[0].ID, key: key.Reveal()}, nil
}

func closeEngine(e *engine.Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return e.Close(ctx)
}

func (a appliance) client(t *testing.T) *client.Client { return newClient(t, a.url, a.key, nil) }

func newClient(t *testing.T, url, key string, transport http.RoundTripper) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{URL: url, Key: key, HTTP: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// carrier answers requests without a network.
type carrier func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := c(r)
	if answer == nil {
		return nil, errConnection
	}
	answer.Request = r
	return answer, nil
}
