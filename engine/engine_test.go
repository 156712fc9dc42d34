package engine

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// appliance is an engine with PostgreSQL, on a data directory of its own.
type appliance struct {
	*Engine
	org, project string
	cfg          core.Config
}

// testConfig returns a configuration on dir with ports of its own. Only benchmarks build data directories in advance.
func testConfig(t testing.TB, dir string) core.Config {
	t.Helper()
	level := slog.LevelWarn
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	first, last := testenv.Ports(t, 20)
	bin := postgrestest.Binaries(t)
	warm := 0
	if _, is := t.(*testing.B); is {
		warm = 1
	}
	return core.Config{
		DataDir:   dir,
		Search:    binaries.Search{Explicit: bin.Dir},
		FirstPort: first, LastPort: last,
		Listen: []string{"127.0.0.1"}, PublicHost: "127.0.0.1",
		Warm:           warm,
		Allowlist:      []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Rates:          core.DefaultRates(),
		MaxObjectBytes: 1 << 30,
		TrashRetention: time.Hour, ReplacedRetention: time.Hour,
		AuditKeep: 10_000,
		Advice:    advice.Defaults(),
		Version:   "test",
		Log:       slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})),
	}
}

// startEngine starts an engine that is closed at the end of the test.
func startEngine(t testing.TB) *appliance {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return startEngineOn(t, testConfig(t, dir))
}

// startEngineOn starts an engine on a data directory, after applying the changes.
func startEngineOn(t testing.TB, cfg core.Config, changes ...func(*Engine)) *appliance {
	t.Helper()
	linkTemplates(t, cfg)
	e, err := Open(cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	for _, change := range changes {
		change(e)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if _, err := e.Access.Initialize(false); err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	return (&appliance{Engine: e, cfg: cfg}).inDefault(t)
}

// openEngine opens an engine without starting it, so that it runs no PostgreSQL.
func openEngine(t testing.TB, cfg core.Config) *appliance {
	t.Helper()
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	return (&appliance{Engine: e, cfg: cfg}).inDefault(t)
}

// linkTemplates gives the next engine the templates of data directories of the versions that it has, so that it runs no
// initdb.
func linkTemplates(t testing.TB, cfg core.Config) {
	t.Helper()
	pool, newDatabases := filepath.Join(cfg.DataDir, "warm"), 0
	all := postgrestest.Known(t)
	for _, found := range cfg.Search.Candidates(t.Context()) {
		known := slices.IndexFunc(all, func(bin binaries.Set) bool { return bin.Version == found.Version })
		switch {
		case found.Err != nil || found.Major == newDatabases:
			continue
		case newDatabases == 0: // the first one that works is for them
			newDatabases = found.Major
		default:
			pool = filepath.Join(cfg.DataDir, "warm", "major-"+strconv.Itoa(found.Major))
		}
		if known >= 0 {
			postgrestest.LinkTemplate(t, all[known], pool)
		}
	}
}

// fillPool prepares count data directories for the next engine.
func fillPool(t testing.TB, cfg core.Config, count int) {
	t.Helper()
	postgrestest.FillPool(t, filepath.Join(cfg.DataDir, "warm"), count)
}

// inDefault selects the organization and project that the first start creates.
func (a *appliance) inDefault(t testing.TB) *appliance {
	t.Helper()
	org, err := a.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	a.org = org.ID
	known := func(tx *meta.Tx) error { return tx.Keys().Insert(*a.call(model.ActionKeyCreate).Key) }
	if err := a.Core.Meta.Update(known); err != nil && !errors.Is(err, meta.ErrExists) {
		t.Fatal(err)
	}
	projects, err := a.Access.ProjectList(a.call(model.ActionProjectList), core.Filter{}, core.Page{})
	if err != nil || len(projects.Items) != 1 {
		t.Fatalf("projects: %v, %v", projects, err)
	}
	a.project = projects.Items[0].ID
	return a
}

// call returns a call of a full-access key of the default organization.
func (a *appliance) call(action model.Action) *model.Call {
	return &model.Call{
		Operation:    model.Operation{Action: action},
		Actor:        model.Actor{Type: model.ActorKey, ID: "key_test", Name: "test"},
		Organization: a.org,
		Key:          &model.Key{ID: "key_test", Hash: []byte("key_test"), Scopes: model.Scopes(), AllowDangerous: true},
	}
}

// operatorCall is call by the operator.
func (a *appliance) operatorCall(action model.Action) *model.Call {
	call := a.call(action)
	call.Actor, call.Key = model.Actor{Type: model.ActorOperator}, nil
	return call
}
