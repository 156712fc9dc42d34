package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"holdfast/cli/client"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// Chaos: clients concurrently make random requests of all kinds while the
// appliance, its servers and its disk fail. A model records what was
// acknowledged, what was refused, and what is unknown because the response was
// lost. After every round everything stops and is compared with the model: see
// chaos_check_test.go for the invariants.
//
// A seed determines each client's acts and the faults, in order; their
// interleaving depends on the machine. The test uses only the built binary:
// over HTTP, through psql and pgx, through its commands, and by inspecting its
// processes, ports and files. The binary has a movable clock (movedclock),
// because the kernel's clock is shared: PostgreSQL keeps that one.
var (
	chaosSeed = flag.Uint64("chaos.seed", 1, "what draws the acts and faults of TestChaos")
	chaosFor  = flag.Duration("chaos.for", 5*time.Second, "how long TestChaos makes new rounds")
	chaosKeep = flag.String("chaos.keep", "", "the directory into which TestChaos, when it fails, copies what is on the disk and off-site")
)

const (
	chaosClients = 6
	// chaosRound is the duration of a round before the check.
	chaosRound = 15 * time.Second
	// chaosBurns is after how many rounds the machine burns, and is recovered from its copy off-site.
	chaosBurns = 3
	// chaosPatience limits every wait: the machine may be busy with other
	// tests.
	chaosPatience = 90 * time.Second
	// chaosDisk is the size of the disk, in MB.
	chaosDisk = "3000"
	// lastingFault is how long after its end a fault can still explain a
	// failure: dead processes restart with back-off.
	lastingFault = 30 * time.Second
)

// chaos is one run.
type chaos struct {
	t       *testing.T
	m       *machine
	project string
	// oldest and newest are the major versions of PostgreSQL that databases are created with; upgrades are to the newest.
	oldest, newest string
	s3             *minio.Core
	s3Address      string
	clients        []*client.Client
	console        *http.Client
	fill           func() // the disk; nil if there is none to fill
	empty          func()
	offset         string // file with the appliance's clock offset
	copy           copied // off-site
	// clockMoves counts the changes of the offset.
	clockMoves atomic.Int64

	mu        sync.Mutex
	databases []*chaosDatabase
	buckets   []*chaosBucket
	keys      []*chaosKey
	// unsure are the names of databases and buckets whose creation was not
	// acknowledged: they may exist.
	unsure map[string]bool
	// unsureUploads are resumable uploads that may wait for bytes for a day, and unsureBytes what they take of the usage.
	unsureUploads int
	unsureBytes   int64
	making        int // databases being created
	// changes are the acknowledged requests that changed something.
	changes map[string]string // description by request id
	lastFor time.Time         // end of the last fault
	counts  map[string]int    // of acts and faults, for the report

	names   atomic.Int64
	faulty  atomic.Int32 // current faults
	quiet   sync.RWMutex // shared by each write; exclusive during the check
	alive   sync.RWMutex // shared by operator commands; exclusive while the appliance starts
	ended   chan struct{}
	writers sync.WaitGroup
}

func TestChaos(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	t.Logf("-chaos.seed %d -chaos.for %s", *chaosSeed, *chaosFor)
	c := newChaos(t)
	end := time.Now().Add(*chaosFor)
	rounds := 0
	for ; rounds == 0 || time.Now().Before(end) && !t.Failed(); rounds++ {
		began := time.Now()
		c.round(rounds, min(chaosRound, max(time.Until(end), *chaosFor/2)))
		disorder := time.Since(began).Round(time.Millisecond)
		c.check(c.random("check", rounds))
		t.Logf("round %d: %s of disorder, %s until all was seen to be in order, %d databases, %d buckets",
			rounds, disorder, (time.Since(began) - disorder).Round(time.Millisecond), len(c.databases), len(c.buckets))
		if !t.Failed() && rounds%chaosBurns == 0 {
			c.burn(c.random("burn", rounds))
		}
	}
	close(c.ended)
	c.writers.Wait()
	t.Logf("%d rounds: %v", rounds, c.counts)
	for _, must := range []string{"kill the appliance", "rows", "recover from the copy"} {
		if c.counts[must] == 0 {
			t.Errorf("never: %s; the run is too tame to say anything", must)
		}
	}
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{
		t: t, m: newMachine(t), unsure: map[string]bool{}, changes: map[string]string{}, counts: map[string]int{},
		ended: make(chan struct{}), s3Address: freeAddress(t),
	}
	c.findVersions()
	c.takeClock()
	c.copy = c.m.prepareCopy(t) // on another disk
	if os.Geteuid() == 0 {
		c.fill, c.empty = c.m.smallDisk(chaosDisk)
	} else {
		t.Log("the disk is not filled: that takes root")
	}
	if *chaosKeep != "" {
		t.Cleanup(c.keep)
	}
	c.start()
	c.project = c.m.project()
	for i := range chaosClients {
		key := createKey(t, c.m, "--preset", "full_access", "--allow-dangerous", "--name", fmt.Sprint("client ", i))
		c.clients = append(c.clients, c.client(key))
	}
	c.signIn()
	c.openS3()
	return c
}

// keep copies what a run that failed has on its disk and off-site. It kills what still runs.
func (c *chaos) keep() {
	if !c.t.Failed() {
		return
	}
	if c.m.process != nil {
		c.m.killAll()
	}
	if out, err := exec.Command("cp", "-a", filepath.Dir(c.m.dataDir), strings.TrimPrefix(c.copy.url, "file://"), *chaosKeep).CombinedOutput(); err != nil {
		c.t.Errorf("%v: %s", err, out)
	}
}

// findVersions has the appliance use the tests' version of PostgreSQL and the newest that this machine has.
func (c *chaos) findVersions() {
	versions := postgrestest.Known(c.t)
	newest := slices.MaxFunc(versions, func(a, b binaries.Set) int { return a.Major - b.Major })
	c.oldest, c.newest = strconv.Itoa(versions[0].Major), strconv.Itoa(newest.Major)
	c.m.env = append(c.m.env, "PATH="+newest.Dir+":"+os.Getenv("PATH"))
}

func (c *chaos) start() { c.m.start(append(c.copy.serveFlags(), c.flags()...)...) }

func (c *chaos) launch() { c.m.launch(append(c.copy.serveFlags(), c.flags()...)...) }

// flags suit the length of a round: deleted resources are removed at once, and
// nothing is scheduled.
func (c *chaos) flags() []string {
	return []string{
		"--warm", "1", "--no-verification=false", "--trash-retention", "0", "--backup-interval", "0", "--s3-listen", c.s3Address,
	}
}

func (c *chaos) client(key string) *client.Client {
	api, err := client.New(client.Config{URL: c.m.api, Key: key, HTTP: &witness{chaos: c}})
	if err != nil {
		c.t.Fatal(err)
	}
	return api
}

// random returns the random source for one part of the run.
func (c *chaos) random(part string, n int) *rand.Rand {
	sum := uint64(n)
	for _, b := range []byte(part) {
		sum = sum*1099511628211 + uint64(b)
	}
	return rand.New(rand.NewPCG(*chaosSeed, sum))
}

// round runs clients and faults for some time, and returns when no act is in
// progress, no fault is active, and the appliance runs.
func (c *chaos) round(n int, life time.Duration) {
	over, cancel := context.WithTimeout(c.t.Context(), life)
	defer cancel()
	var actors sync.WaitGroup
	for i, api := range c.clients {
		actors.Go(func() {
			random := c.random(fmt.Sprint("client ", i), n)
			for over.Err() == nil {
				c.act(random, api)
			}
		})
	}
	c.misfortunes(over, c.random("faults", n))
	actors.Wait()
}

// act performs one act.
func (c *chaos) act(random *rand.Rand, api *client.Client) {
	ctx, cancel := context.WithTimeout(c.t.Context(), chaosPatience)
	defer cancel()
	a := chaosActs[random.IntN(len(chaosActs))]
	if !a.do(c, ctx, random, api) { // it had no target
		time.Sleep(5 * time.Millisecond)
		return
	}
	c.count(a.name)
}

// chaosAct is an act of a client. do reports whether it could be tried.
type chaosAct struct {
	name string
	do   func(*chaos, context.Context, *rand.Rand, *client.Client) bool
}

// chaosActs lists frequent acts more than once.
var chaosActs = slices.Concat(
	slices.Repeat([]chaosAct{{"put", (*chaos).putObject}}, 12),
	slices.Repeat([]chaosAct{{"delete an object", (*chaos).deleteObject}}, 4),
	slices.Repeat([]chaosAct{{"get", (*chaos).getObject}}, 4),
	slices.Repeat([]chaosAct{{"resumable upload", (*chaos).resumableUpload}}, 3),
	slices.Repeat([]chaosAct{{"put by S3", (*chaos).putByS3}, {"upload by S3", (*chaos).uploadByS3}}, 4),
	slices.Repeat([]chaosAct{{"delete by S3", (*chaos).deleteByS3}, {"copy by S3", (*chaos).copyByS3}, {"get by S3", (*chaos).getByS3}}, 2),
	slices.Repeat([]chaosAct{{"sleep", (*chaos).letSleep}}, 2),
	slices.Repeat([]chaosAct{{"back up", (*chaos).backUp}}, 4),
	slices.Repeat([]chaosAct{{"create a database", (*chaos).createDatabase}}, 4),
	slices.Repeat([]chaosAct{{"restart", (*chaos).restart}}, 2),
	[]chaosAct{
		{"create a bucket", (*chaos).createBucket},
		{"delete a bucket", (*chaos).deleteBucket},
		{"change a bucket", (*chaos).updateBucket},
		{"delete a database", (*chaos).deleteDatabase},
		{"rotate", (*chaos).rotate},
		{"change a role", (*chaos).changeRole},
		{"change a role", (*chaos).changeRole},
		{"allow", (*chaos).allow},
		{"row-level security", (*chaos).rowSecurity},
		{"extension", (*chaos).changeExtension},
		{"upgrade", (*chaos).upgrade},
		{"pin", (*chaos).pin},
		{"delete a backup", (*chaos).deleteBackup},
		{"restore in place", (*chaos).restoreInPlace},
		{"restore to a time", (*chaos).restoreToTime},
		{"restore anew", (*chaos).restoreNew},
		{"branch", (*chaos).branch},
		{"undo", (*chaos).undo},
		{"import", (*chaos).importDatabase},
		{"export", (*chaos).export},
		{"create a key", (*chaos).createKey},
		{"revoke a key", (*chaos).revokeKey},
		{"device login", (*chaos).deviceLogin},
	},
)

func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// name returns a name that was never used before.
func (c *chaos) name(kind string) string { return fmt.Sprintf("%s-%d", kind, c.names.Add(1)) }

// outcome is what is known of a request's effect.
type outcome int

const (
	done    outcome = iota // acknowledged: it happened
	refused                // refused: nothing changed
	unknown                // the response was lost
)

// outcome returns the outcome of a request. A refusal must be an allowed one,
// or say that the disk is full or that there were too many requests.
func (c *chaos) outcome(what string, err error, allowed ...wire.ErrorCode) outcome {
	refusal, isRefusal := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return done
	case isRefusal && c.isDiskFull(refusal.Status):
		return refused
	case !isRefusal, refusal.Status >= 500: // the witness has reported it
		return unknown
	case refusal.Code == wire.CodeRateLimited, slices.Contains(allowed, refusal.Code):
		return refused
	default:
		c.t.Errorf("%s: %d %s: %s", what, refusal.Status, refusal.Code, refusal.Message)
		return refused
	}
}

// excused reports whether a fault may explain a failure since began.
func (c *chaos) excused(began time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faulty.Load() > 0 || c.lastFor.Add(lastingFault).After(began)
}

// witness is a transport that checks every response against the OpenAPI
// document and records acknowledged changes.
type witness struct{ chaos *chaos }

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	c := w.chaos
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/v1/") {
		return answer, err
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	if answer.Header.Get("Content-Type") != "text/event-stream" { // the checker reads only JSON
		c.m.description.CheckAnswer(c.t, r, answer, text)
	}
	what := r.Method + " " + r.URL.Path
	if answer.StatusCode >= 500 && !c.isDiskFull(answer.StatusCode) {
		c.t.Errorf("%s: %s: %s", what, answer.Status, text)
	}
	if answer.StatusCode == http.StatusOK && r.Method != http.MethodGet {
		c.mu.Lock()
		c.changes[answer.Header.Get("X-Request-Id")] = what
		c.mu.Unlock()
	}
	return answer, nil
}

// isDiskFull reports whether a response says that the disk is full, and that can be.
func (c *chaos) isDiskFull(status int) bool {
	return c.fill != nil && status == http.StatusInsufficientStorage
}

// within polls until done returns "", at most for chaosPatience.
func (c *chaos) within(what string, done func() string) bool {
	left := ""
	for deadline := time.Now().Add(chaosPatience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if left = done(); left == "" {
			return true
		}
	}
	c.t.Errorf("%s did not come about: %s", what, left)
	_ = c.m.process.Process.Signal(syscall.SIGQUIT) // its log then says what it does
	return false
}
