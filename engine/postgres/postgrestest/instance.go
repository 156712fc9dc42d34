package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast/engine/certificates"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// cacheName is the directory in the user's cache where a run without an installed
// PostgreSQL stores its download.
const cacheName = "holdfast-test"

// startTimeout bounds the harness's own waits. It is long enough for a machine
// busy with other work, so exceeding it means a hang.
const startTimeout = 60 * time.Second

// Binaries finds PostgreSQL as the product does; if none is installed it
// downloads one, once for all runs. It fails the test if there is none. With
// HOLDFAST_TEST_MAJOR=18 it is that of [Major], for all tests of the process.
func Binaries(tb testing.TB) binaries.Set {
	tb.Helper()
	bin, err := found()
	if err != nil {
		tb.Fatalf("find PostgreSQL: %v", err)
	}
	return bin
}

// found finds PostgreSQL once for the process.
var found = sync.OnceValues(find)

func find() (binaries.Set, error) {
	if major, err := strconv.Atoi(os.Getenv(majorVariable)); err == nil {
		return findMajor(major)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return binaries.Set{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return binaries.Search{CacheDir: filepath.Join(cache, cacheName)}.Find(ctx)
}

// Database is a throw-away instance with its tenant, reachable over TCP from
// loopback.
type Database struct {
	Supervisor *postgres.Supervisor
	Spec       postgres.Spec
	Tenant     postgres.Tenant
	CA         certificates.CA
}

// Instance starts a throw-away instance and stops it when the test ends.
func Instance(tb testing.TB) *Database {
	tb.Helper()
	return InstanceWith(tb, func(*postgres.Spec) {})
}

// InstanceWith is Instance with another specification.
func InstanceWith(tb testing.TB, change func(*postgres.Spec)) *Database {
	tb.Helper()
	return InstanceOf(tb, Binaries(tb), change)
}

// InstanceOf is InstanceWith for another version of PostgreSQL (see [Major]).
func InstanceOf(tb testing.TB, bin binaries.Set, change func(*postgres.Spec)) *Database {
	tb.Helper()
	d := prepareOf(tb, bin)
	change(&d.Spec)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	d.Supervisor = postgres.NewSupervisor(postgres.SupervisorOptions{})
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := d.Supervisor.Close(ctx); err != nil {
			tb.Errorf("stop throw-away instance: %v", err)
		}
	})
	if err := d.Supervisor.Start(ctx, d.Spec); err != nil {
		tb.Fatalf("start throw-away instance: %v", err)
	}
	d.provision(tb)
	return d
}

// Prepare creates a data directory with a certificate, and the specification of
// its instance. It starts nothing.
func Prepare(tb testing.TB) *Database {
	tb.Helper()
	return prepareOf(tb, Binaries(tb))
}

func prepareOf(tb testing.TB, bin binaries.Set) *Database {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "data")
	copyPrepared(tb, bin, dir)
	ca, err := certificates.LoadOrCreateCA(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	if err := ca.Issue(certificates.InDataDirectory(dir), []string{"localhost", "127.0.0.1", "::1"}, 24*time.Hour); err != nil {
		tb.Fatal(err)
	}
	port, _ := testenv.Ports(tb, 1)
	tenant := postgres.Tenant{
		Database: "app", Owner: "app", OwnerPassword: model.NewSecret(rand.Text()),
		ReadOnly: "app_readonly", ReadOnlyPassword: model.NewSecret(rand.Text()),
	}
	return &Database{CA: ca, Tenant: tenant, Spec: postgres.Spec{
		ID: "db_" + filepath.Base(filepath.Dir(dir)), Bin: bin, Dir: dir,
		Config: postgres.Config{Port: port, Listen: []string{"127.0.0.1"}},
		HBA: postgres.HBA{
			Database: tenant.Database, Users: []string{tenant.Owner, tenant.ReadOnly},
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	}}
}

func (d *Database) provision(tb testing.TB) {
	tb.Helper()
	conn := d.Superuser(tb, "postgres")
	if err := postgres.Provision(tb.Context(), conn, d.Tenant); err != nil {
		tb.Fatalf("provision throw-away instance: %v", err)
	}
}

// Superuser opens a session as the appliance's own role; it is closed when the
// test ends.
func (d *Database) Superuser(tb testing.TB, database string) *pgx.Conn {
	tb.Helper()
	conn, err := d.Supervisor.Connect(tb.Context(), d.Spec.ID, database)
	return closed(tb, conn, err)
}

// Owner opens a session as the owner, over TCP with TLS.
func (d *Database) Owner(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), d.URL(d.Tenant.Owner, d.Tenant.OwnerPassword))
	return closed(tb, conn, err)
}

// ReadOnly opens a session as the read-only role, over TCP with TLS.
func (d *Database) ReadOnly(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), d.URL(d.Tenant.ReadOnly, d.Tenant.ReadOnlyPassword))
	return closed(tb, conn, err)
}

// URL returns the connection URL of a role.
func (d *Database) URL(role string, password model.Secret) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=require", role, password.Reveal(), d.Spec.Config.Port, d.Tenant.Database)
}

func closed(tb testing.TB, conn *pgx.Conn, err error) *pgx.Conn {
	tb.Helper()
	if err != nil {
		tb.Fatalf("connect to throw-away instance: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// SocketDir returns the private directory of the instance's socket.
func (d *Database) SocketDir(tb testing.TB) string {
	tb.Helper()
	if d.Spec.Config.SocketDir != "" {
		return d.Spec.Config.SocketDir
	}
	dir, err := postgres.SocketDir(d.Spec.Dir)
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}
