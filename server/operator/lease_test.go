package operator_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/cli/sandbox"
	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
	"holdfast/server"
	"holdfast/server/operator"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// appliance is a server with its operator's socket, over PostgreSQL.
type appliance struct {
	*engine.Engine
	address string
	stop    func() error // waits for the end
}

// short returns the timeouts of the tests: a lease outlasts all of them.
func short() server.Timeouts {
	return server.Timeouts{ReadHeader: 200 * time.Millisecond, Read: 200 * time.Millisecond, Idle: 200 * time.Millisecond, Drain: 2 * time.Second}
}

func startAppliance(t *testing.T) *appliance {
	t.Helper()
	first, last := testenv.Ports(t, 40)
	e, err := engine.Open(core.Config{
		DataDir: t.TempDir(), Search: binaries.Search{Explicit: postgrestest.Binaries(t).Dir}, FirstPort: first, LastPort: last,
		Listen: []string{"127.0.0.1"}, PublicHost: "127.0.0.1", Allowlist: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Rates: map[model.RateClass]core.Rate{}, MaxObjectBytes: 1 << 20, TrashRetention: time.Hour, ReplacedRetention: time.Hour,
		AuditKeep: 1000, Advice: advice.Defaults(), Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	postgrestest.LinkTemplate(t, postgrestest.Binaries(t), filepath.Join(e.Core.Config.DataDir, "warm"))
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	return serve(t, e)
}

func serve(t *testing.T, e *engine.Engine) *appliance {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	srv, err := server.New(e, server.Options{
		BaseURL: "http://" + listener.Addr().String(), OperatorSocket: server.OperatorSocket(e.SocketDir()), Leases: operator.NewLeases(),
		Serving: func() { close(serving) }, Timeouts: short(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, listener, nil) }()
	a := &appliance{e, listener.Addr().String(), func() error { cancel(); err := <-ended; ended <- err; return err }}
	t.Cleanup(func() { _ = a.stop() })
	<-serving
	return a
}

// take takes a sandbox over the operator's socket, like the command.
func (a *appliance) take(t *testing.T) *sandbox.Lease {
	t.Helper()
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", server.OperatorSocket(a.SocketDir()))
	}
	lease, err := sandbox.Take(t.Context(), dial, operator.NewSandbox{Organization: model.DefaultName, Operator: "test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// databases returns all database records.
func (a *appliance) databases(t *testing.T) []databases.View {
	t.Helper()
	list, err := a.Databases.List(a.call(t, model.ActionDatabaseList), databases.Filter{}, core.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (a *appliance) call(t *testing.T, action model.Action) *model.Call {
	t.Helper()
	org, err := a.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	return &model.Call{Operation: model.OperationFor(action), Actor: model.Actor{Type: model.ActorOperator}, Organization: org.ID}
}

// TestLeaseOutlastsTimeouts holds a lease for longer than any request may take.
func TestLeaseOutlastsTimeouts(t *testing.T) {
	t.Parallel()
	a := startAppliance(t)
	lease := a.take(t)
	<-time.After(10 * short().Read)
	if err := lease.Why(); err != nil {
		t.Errorf("the lease was lost: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), lease.Environment.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table kept (n int)"); err != nil {
		t.Error(err)
	}
	conn.Close(t.Context())
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
	if left := a.databases(t); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// TestLeaseOfADeletedDatabase deletes a database in use: its holder learns the reason before the database is
// stopped.
func TestLeaseOfADeletedDatabase(t *testing.T) {
	t.Parallel()
	a := startAppliance(t)
	lease := a.take(t)
	if _, err := a.Databases.Delete(t.Context(), a.call(t, model.ActionDatabaseDelete), a.databases(t)[0].ID); err != nil {
		t.Fatal(err)
	}
	wantLost(t, lease, "the database was deleted")
}

// TestLeaseEndsBesideAnotherRequest stops an appliance while a request on its address takes longer than the drain
// timeout: the lease still ends in order.
func TestLeaseEndsBesideAnotherRequest(t *testing.T) {
	t.Parallel()
	a := startAppliance(t)
	lease := a.take(t)
	conn, err := net.Dial("tcp", a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	key, _, err := a.Access.KeyCreate(a.call(t, model.ActionKeyCreate), access.NewKey{Name: "test", Preset: model.PresetFullAccess, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	bucket := a.bucket(t)
	head := "POST /v1/buckets/" + bucket + "/objects?key=a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + key.Reveal() +
		"\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 100)); err != nil || n == 0 { // "continue": the upload is under way
		t.Fatal(err)
	}
	began := time.Now()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < short().Drain {
		t.Errorf("nothing was waited for: it took %s", took)
	}
	wantLost(t, lease, "the appliance is being stopped")
	if left := a.databases(t); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func (a *appliance) bucket(t *testing.T) string {
	t.Helper()
	projects, err := a.Access.ProjectList(a.call(t, model.ActionProjectList), core.Filter{}, core.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Objects.BucketCreate(a.call(t, model.ActionBucketCreate), objects.NewBucket{Project: projects.Items[0].ID, Name: "files"})
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

// wantLost checks that a lease has ended for that reason, and that its removal succeeded.
func wantLost(t *testing.T, lease *sandbox.Lease, why string) {
	t.Helper()
	testenv.Within(t, time.Minute, "the end of the lease", func() bool { return lease.Why() != nil })
	if err := lease.Why(); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("lost because of: %v", err)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("release: %v", err)
	}
}
