package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/minio/minio-go/v7"

	"holdfast/cli/client"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// Soak: many clients use many databases at once for a long time, as tenants do. They
// read and change records, view the console, upload and download by the API and by S3,
// run pgbench, create and delete databases, branch some that fall asleep and wake, and make
// backups with verifications and exports, while everything is copied off-site. Meanwhile
// hostile clients send headers and bodies one byte at a time, send endless headers,
// and keep connections idle.
//
// Nothing fails here, so nothing is excused: each response must be the expected
// one, or 429 with a time to retry. The run consists of cycles. After each the
// appliance must return to the goroutines, open files, servers and shared memory it started with.
// Durations are reported, not tested.
var (
	soakFor       = flag.Duration("soak.for", 3*time.Second, "how long TestSoak keeps up its load")
	soakDatabases = flag.Int("soak.databases", 2, "how many databases there are in TestSoak")
	soakClients   = flag.Int("soak.clients", 8, "how many clients there are in TestSoak")
	soakThink     = flag.Duration("soak.think", 100*time.Millisecond, "how long a client of TestSoak thinks between two requests, on average")
)

const (
	// soakPatience limits a verification: they run one after the other.
	soakPatience = 5 * time.Minute
	// soakLong is the minimum duration of a run that tests memory: pools and
	// caches are full by then.
	soakLong = 3 * time.Minute
	// soakAudit is the number of audit entries kept: few, so that the metadata
	// stop growing early in a long run.
	soakAudit = "20000"
	// lasting is how many more goroutines or open files are allowed at rest
	// than before: for the appliance's own background work.
	lasting = 25
	// archived is the number of files that stay open for each database's
	// backups and WAL: two directories and the segment being received. Each
	// backup adds an index until they are merged into one.
	archived = 3
	merging  = 33
)

// soak is one run.
type soak struct {
	t         *testing.T
	m         *machine
	project   string
	bucket    string
	s3        *minio.Core
	databases []string // ids
	urls      []string // their URLs
	keys      []string // shared by clients
	clients   []*soakClient
	figures   *soakFigures
	before    footprint // at rest
	chaos     *chaos    // for its check of leftovers
	// benched counts the transactions that pgbench reported as committed, by
	// database.
	benched []int
}

func TestSoak(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cycles := 3
	if *soakFor < soakLong {
		cycles = 2
	}
	t.Logf("%d databases, %d clients, %s in %d cycles, thinking %s", *soakDatabases, *soakClients, *soakFor, cycles, *soakThink)
	s := newSoak(t)
	s.awaitRest()
	for n := 0; n < cycles && !t.Failed(); n++ {
		s.cycle(n, *soakFor/time.Duration(cycles))
		s.mustRest(n)
	}
	s.figures.report(t)
	s.figures.checkMemory(t)
	s.checkObjects()
	s.checkBenched()
	s.checkLeftovers()
}

// newSoak starts an appliance and creates the resources to use.
func newSoak(t *testing.T) *soak {
	s := &soak{t: t, m: newMachine(t), benched: make([]int, *soakDatabases)}
	const others = 8 // short-lived databases, and the time until their ports are free
	first, last := testenv.Ports(t, *soakDatabases+others)
	s.m.ports = fmt.Sprintf("%d-%d", first, last)
	watched, s3 := freeAddress(t), freeAddress(t)
	copy := s.m.prepareCopy(t)
	s.m.start(append(copy.serveFlags(), "--warm", "1", "--no-verification=false", "--trash-retention", "0", "--backup-interval", "0",
		"--audit-keep", soakAudit, "--metrics-listen", watched, "--s3-listen", s3, "--log-level", "warn")...)
	s.chaos = &chaos{t: t, m: s.m}
	s.chaos.signIn()
	s.chaos.console.Transport = newTransport()
	s.figures = newSoakFigures(s.m, "http://"+watched+"/metrics", strings.TrimPrefix(copy.url, "file://"))
	s.project = s.m.project()
	var bucket struct{ ID string }
	s.m.must("POST", "/buckets", map[string]any{"project": s.project, "name": "soak"}, &bucket)
	s.bucket = bucket.ID
	const keys = 4
	for range keys {
		s.keys = append(s.keys, createKey(t, s.m, "--preset", "full_access", "--allow-dangerous"))
	}
	s.openS3(s3)
	s.makeDatabases()
	for n := range *soakClients {
		s.clients = append(s.clients, s.newClient(n))
	}
	return s
}

// makeDatabases creates the databases, and prepares some for pgbench. It
// rotates the keys: one may create 30 a minute.
func (s *soak) makeDatabases() {
	for n := range *soakDatabases {
		s.m.key = s.keys[n%len(s.keys)]
		db := s.m.createDatabase(fmt.Sprintf("soak-%d", n))
		s.databases, s.urls = append(s.databases, db.ID), append(s.urls, db.Credentials.ConnectionURL)
		if s.isBenched(n) {
			s.pgbench(s.t.Context(), "--initialize", "--quiet", "--foreign-keys", db.Credentials.ConnectionURL)
			s.m.backup(db.ID) // which a branch begins with where the file system shares no blocks
		}
	}
}

// newAPI returns a client with one of the keys and its own connections.
func (s *soak) newAPI(n int) (api *client.Client, hangUp func()) {
	transport := newTransport()
	api, err := client.New(client.Config{URL: s.m.api, Key: s.keys[n%len(s.keys)], HTTP: transport})
	if err != nil {
		s.t.Fatal(err)
	}
	return api, transport.CloseIdleConnections
}

// awaitRest waits until the footprint stops shrinking, and records the minimum.
func (s *soak) awaitRest() {
	const patience = 20
	s.before = s.figures.measure()
	for same := 0; same < patience; same++ {
		time.Sleep(50 * time.Millisecond)
		if now := s.figures.measure(); now.goroutines < s.before.goroutines || now.files < s.before.files || now.servers < s.before.servers {
			s.before, same = now, 0
		}
	}
	s.t.Logf("before: %s", s.before)
}

// mustRest checks that the appliance releases what the load used.
func (s *soak) mustRest(cycle int) {
	var now footprint
	s.chaos.within(fmt.Sprint("rest after cycle ", cycle), func() string {
		now = s.figures.measure()
		others, before := now.files-now.ofBackups, s.before.files-s.before.ofBackups
		if now.goroutines < 0 || now.goroutines > s.before.goroutines+lasting || now.files < 0 || others > before+lasting ||
			now.servers > s.before.servers+1 ||
			now.ofBackups > archived*len(s.databases)+min(s.figures.count("backup"), merging*len(s.databases))+lasting {
			return now.String()
		}
		return ""
	})
	s.t.Logf("at rest after cycle %d: %s", cycle, now)
	s.figures.restAfter(s.t, now)
}

// cycle keeps up the load for some time, and returns when everything that was
// started has ended.
func (s *soak) cycle(n int, life time.Duration) {
	over, cancel := context.WithTimeout(s.t.Context(), life)
	defer cancel()
	s.figures.begin(n)
	var actors sync.WaitGroup
	for _, c := range s.clients {
		actors.Go(func() { c.use(over) })
	}
	for n := range s.databases {
		if s.isBenched(n) {
			actors.Go(func() { s.bench(n, life) })
		}
	}
	s.backUpAll(over, &actors)
	s.makeAndDelete(over, &actors)
	s.branchAndSleep(over, &actors)
	s.beginAttacks(over, &actors)
	actors.Go(func() { s.figures.sample(over, max(*soakFor/300, 200*time.Millisecond)) })
	actors.Wait()
	for _, c := range s.clients {
		c.hangUp()
	}
	s.chaos.console.CloseIdleConnections()
}

// makeAndDelete repeatedly creates and deletes databases.
func (s *soak) makeAndDelete(over context.Context, actors *sync.WaitGroup) {
	api, hangUp := s.newAPI(0)
	actors.Go(func() {
		defer hangUp()
		for n := 0; over.Err() == nil; n++ {
			s.pass(api, fmt.Sprintf("passing-%d-%d", s.figures.cycle, n))
			think(over, *soakFor/40)
		}
	})
}

// pass creates a database, uses it and deletes it.
func (s *soak) pass(api *client.Client, name string) {
	var made wire.CreatedDatabase
	if !s.ask("create a database", func(ctx context.Context) (err error) {
		made, err = api.CreateDatabase(ctx, wire.CreateDatabase{Project: s.project, Name: name})
		return err
	}) {
		return
	}
	s.ask("log in", func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, made.Credentials.ConnectionURL)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	s.ask("delete a database", func(ctx context.Context) error {
		_, err := api.DeleteDatabase(ctx, made.ID)
		return err
	})
}

// think waits for a random time of at most twice the average.
func think(over context.Context, average time.Duration) {
	select {
	case <-over.Done():
	case <-time.After(rand.N(2 * average)):
	}
}

// ask performs a request that must get a response, and records how long it
// took. It reports whether it was done: not if there were too many requests.
func (s *soak) ask(kind string, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), chaosPatience)
	defer cancel()
	began := time.Now()
	err := do(ctx)
	took := time.Since(began)
	switch refusal, isRefusal := errors.AsType[*client.Error](err); {
	case err == nil:
		s.figures.add(kind, took)
		return true
	case isRefusal && refusal.Code == wire.CodeRateLimited && refusal.RetryAfter > 0, isRefusal && isUnderWay(refusal):
		s.figures.add("refused for now", took)
	case isRefusal:
		s.t.Errorf("%s: after %s: %d %s: %s (%s)", kind, took, refusal.Status, refusal.Code, refusal.Message, refusal.RequestID)
	default:
		s.t.Errorf("%s: after %s: %v", kind, took, err)
	}
	return false
}

// isUnderWay reports whether another client's operation is in progress.
func isUnderWay(refusal *client.Error) bool {
	return refusal.Code == wire.CodeConflict && strings.Contains(refusal.Message, "is under way")
}

// checkLeftovers checks for orphaned processes and ports.
func (s *soak) checkLeftovers() {
	ctx, cancel := context.WithTimeout(s.t.Context(), chaosPatience)
	defer cancel()
	api, hangUp := s.newAPI(0)
	defer hangUp()
	listed := collect(s.chaos, api.Databases(ctx, client.DatabaseOptions{}), func(d wire.Database) string { return d.ID })
	if len(listed) != len(s.databases) {
		s.t.Errorf("%d databases are listed of %d", len(listed), len(s.databases))
	}
	s.chaos.within("only known processes", func() string { return s.chaos.leftProcesses(listed) })
	s.chaos.within("only known ports", func() string { return s.chaos.leftPorts(listed) })
	s.chaos.within("only known sockets", s.chaos.leftSockets)
	for id := range listed {
		s.chaos.within("one slot, advanced, at "+id, func() string { return s.chaos.leftSlots(ctx, api, id) })
	}
	for line := range strings.Lines(s.m.log.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
			s.t.Errorf("in the log: %s", line)
		}
	}
}
