package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"

	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// copied is a copy of appliances in a store, and what opens it.
type copied struct {
	url        string
	passphrase string // a file
	recipient  string // in place of a passphrase, and
	identity   string // the file that opens what is encrypted to it
}

func (c copied) initFlags() []string {
	if c.recipient != "" {
		return []string{"--recipient", c.recipient}
	}
	return c.openFlags()
}

func (c copied) openFlags() []string {
	if c.identity != "" {
		return []string{"--identity", c.identity}
	}
	return []string{"--passphrase-file", c.passphrase}
}

func (c copied) serveFlags() []string {
	if c.identity != "" {
		return []string{"--offsite", c.url, "--offsite-identity", c.identity}
	}
	return []string{"--offsite", c.url, "--offsite-passphrase-file", c.passphrase}
}

// newIdentity makes an age identity for a copy at a URL.
func newIdentity(t testing.TB, url string) copied {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return copied{url: url, recipient: identity.Recipient().String(), identity: file}
}

// prepareCopy prepares a directory for the copy of a machine. An identity opens it: each use of a passphrase takes 128 MiB
// of memory and half a second of a processor.
func (m *machine) prepareCopy(t testing.TB) copied {
	t.Helper()
	url, _ := m.store(t)
	return m.prepare(newIdentity(t, url))
}

// prepareWithPassphrase is prepareCopy with a passphrase.
func (m *machine) prepareWithPassphrase(t testing.TB) copied {
	t.Helper()
	url, passphrase := m.store(t)
	return m.prepare(copied{url: url, passphrase: passphrase})
}

// prepare makes the copy of a machine.
func (m *machine) prepare(c copied) copied {
	m.t.Helper()
	if out, err := m.command(append([]string{"offsite", "init", c.url, "--yes"}, c.initFlags()...)...).CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	return c
}

// prepareBucket prepares a bucket of an S3 server for the copy of a machine.
func (m *machine) prepareBucket(t testing.TB) copied {
	t.Helper()
	server := objectstoretest.Servers(t)[0]
	for name, value := range server.Environment("") {
		m.env = append(m.env, name+"="+value)
	}
	return m.prepare(newIdentity(t, "s3://"+server.Bucket(t, false)+"/home"))
}

// createBucket makes a bucket and returns its id.
func (m *machine) createBucket(name string) string {
	m.t.Helper()
	var bucket struct{ ID string }
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": name}, &bucket)
	return bucket.ID
}

// killAll kills the appliance and every server with SIGKILL.
func (m *machine) killAll() {
	m.t.Helper()
	pid := m.process.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, server := range m.processes() {
		_ = syscall.Kill(server, syscall.SIGKILL)
	}
	<-m.exited
	m.process = nil
	testenv.Eventually(m.t, "the end of the servers", func() bool { return len(m.processes()) == 0 })
}

// recoverFrom runs `recover` and returns once the API answers.
func (m *machine) recoverFrom(c copied, args ...string) {
	m.t.Helper()
	m.awaitRecovered(m.launchRecover(c, args...))
}

func (m *machine) launchRecover(c copied, args ...string) <-chan string {
	m.t.Helper()
	return m.launchCommand([]string{"recover", c.url}, slices.Concat(c.openFlags(), []string{"--yes", "--take-over"}, args)...)
}

// finishRecovery runs `recover` once more after it was killed. The kill can have come after its end: then
// the appliance is started.
func (m *machine) finishRecovery(c copied) {
	m.t.Helper()
	select {
	case text := <-m.launchRecover(c):
		if text != "" {
			m.read(text)
			return
		}
	case <-time.After(applianceTime):
		m.t.Fatalf("the appliance was not recovered:\n%s", m.log.String())
	}
	<-m.exited
	m.process = nil
	if !strings.Contains(m.log.String(), "is complete: `holdfast serve` starts the appliance") {
		m.t.Fatalf("the recovery did not go on:\n%s", m.log.String())
	}
	m.start(c.serveFlags()...)
}

func (m *machine) awaitRecovered(announced <-chan string) {
	m.t.Helper()
	select {
	case text := <-announced:
		m.read(text)
	case <-time.After(applianceTime):
		m.t.Fatalf("the appliance was not recovered:\n%s", m.log.String())
	}
}

// acknowledged is what clients were told is stored, with the time.
type acknowledged struct {
	mu      sync.Mutex
	rows    []time.Time // of row n+1
	objects []time.Time // of object n
}

// prepareLoad makes what load writes to: a database with a backup, and a bucket.
func (m *machine) prepareLoad(t testing.TB) (shop database, bucket string) {
	t.Helper()
	shop, bucket = m.createDatabase("shop"), m.createBucket("files")
	query(t, m.connectionURL(shop.ID), "create table t (n int primary key)")
	m.backup(shop.ID)
	return shop, bucket
}

// betweenWrites is the pause after each write of load. With a shorter one load writes thousands of rows and objects, and most
// of a test's processor time goes into recovering and reading them.
const betweenWrites = 10 * time.Millisecond

// load writes rows and objects until end is called.
func (l *acknowledged) load(t testing.TB, m *machine, databaseURL, bucket string) (end func()) {
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		conn, err := pgx.Connect(ctx, databaseURL)
		if err != nil {
			return
		}
		defer conn.Close(context.WithoutCancel(ctx))
		for n := 1; ctx.Err() == nil; n++ {
			if _, err := conn.Exec(ctx, "insert into t values ($1)", n); err != nil {
				return
			}
			l.mu.Lock()
			l.rows = append(l.rows, time.Now())
			l.mu.Unlock()
			time.Sleep(betweenWrites)
		}
	})
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			request, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("%s/buckets/%s/objects?key=o%d", m.api, bucket, n), strings.NewReader(objectContent(n)))
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+m.key)
			request.Header.Set("Content-Type", "application/octet-stream")
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return
			}
			l.mu.Lock()
			l.objects = append(l.objects, time.Now())
			l.mu.Unlock()
			time.Sleep(betweenWrites)
		}
	})
	return func() {
		stop()
		all.Wait()
	}
}

// objectContent returns the content of the object n: every tenth is a file of its own.
func objectContent(n int) string {
	if n%10 == 9 {
		return strings.Repeat(fmt.Sprintf("large %d ", n), 20_000)
	}
	return fmt.Sprintf("small %d", n)
}

// before returns how many of the times are not after a moment.
func before(times []time.Time, moment time.Time) (n int) {
	for _, t := range times {
		if !t.After(moment) {
			n++
		}
	}
	return n
}

// holdsUntil checks that everything that was acknowledged until a moment is there, and
// nothing that was not. It returns how many seconds of rows and objects are missing.
func (l *acknowledged) holdsUntil(t testing.TB, m *machine, database, bucket string, moment, end time.Time) (rowsLost, objectsLost time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows int
	found := query(t, m.connectionURL(database), "select count(*) || ' ' || coalesce(max(n), 0) from t")
	var highest int
	if _, err := fmt.Sscan(found, &rows, &highest); err != nil {
		t.Fatal(err)
	}
	if rows != highest || rows < before(l.rows, moment) || rows > len(l.rows)+1 {
		t.Errorf("%d rows are back, up to %d; %d were acknowledged by %s, %d in all", rows, highest, before(l.rows, moment), moment, len(l.rows))
	}
	objects := 0
	for n := range l.objects {
		status, e := m.do("GET", fmt.Sprintf("/buckets/%s/objects/o%d", bucket, n), nil)
		if status == http.StatusNotFound {
			continue
		}
		if status != http.StatusOK {
			t.Fatalf("object %d: %d %+v", n, status, e.Error)
		}
		var object struct {
			URL string `json:"download_url"`
		}
		if err := json.Unmarshal(e.Data, &object); err != nil {
			t.Fatalf("object %d: %v", n, err)
		}
		if status, got := download(t, object.URL); status != http.StatusOK || got != objectContent(n) {
			t.Errorf("object %d: %d, with %d bytes", n, status, len(got))
		}
		objects++
	}
	if objects < before(l.objects, moment) {
		t.Errorf("%d objects are back; %d were acknowledged by %s, %d in all", objects, before(l.objects, moment), moment, len(l.objects))
	}
	lost := func(times []time.Time, n int) time.Duration {
		if n >= len(times) {
			return 0
		}
		return max(0, end.Sub(times[n])) // what was acknowledged until the process was gone
	}
	return lost(l.rows, rows), lost(l.objects, objects)
}

// allowedLoss is how much of the last changes may be missing.
const allowedLoss = 5 * time.Second

// TestRecover kills a machine under load, removes it, and brings it back elsewhere from a
// directory and from S3. The old machine, coming back, is read-only.
func TestRecover(t *testing.T) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		testRecover(t, m, m.prepareWithPassphrase(t), nil)
	})
	t.Run("S3", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		testRecover(t, m, m.prepareBucket(t), m.env)
	})
}

func testRecover(t *testing.T, old *machine, c copied, env []string) {
	old.start(c.serveFlags()...)
	shop, bucket := old.prepareLoad(t)
	var l acknowledged
	endLoad := l.load(t, old, old.connectionURL(shop.ID), bucket)
	time.Sleep(8 * time.Second) // load, of which the last seconds may be lost
	killed := time.Now()
	old.killAll()
	endLoad()
	returned := old.elsewhere()
	if err := os.Rename(old.dataDir, returned.dataDir); err != nil {
		t.Fatal(err)
	}

	fresh := old.elsewhere()
	fresh.env, returned.env = env, env
	began := time.Now()
	fresh.recoverFrom(c)
	answered := time.Since(began)
	fresh.awaitAvailable(shop.ID)
	available := time.Since(began)
	if log := fresh.log.String(); strings.Contains(log, "may be missing in the archive") {
		t.Errorf("a recovery warns of data that it does not replace:\n%s", log)
	}
	rows, objects := l.holdsUntil(t, fresh, shop.ID, bucket, killed.Add(-allowedLoss), killed)
	t.Logf("%d rows, %d objects; the API answers after %s, the database after %s; lost: %s of rows, %s of objects", len(l.rows), len(l.objects),
		answered.Round(time.Millisecond), available.Round(time.Millisecond), rows.Round(time.Millisecond), objects.Round(time.Millisecond))
	query(t, fresh.connectionURL(shop.ID), "create table since as select 7 n")
	testenv.Eventually(t, "the backup that a recovery owes", func() bool {
		var all []wire.Backup
		fresh.must("GET", "/databases/"+shop.ID+"/backups", nil, &all)
		return slices.ContainsFunc(all, func(b wire.Backup) bool { return b.StartedAt.After(began) })
	})
	if log := fresh.log.String(); strings.Contains(log, "a backup waits") {
		t.Errorf("the backup of a recovered database waits:\n%s", log)
	}
	fresh.backup(fresh.createDatabase("later").ID)

	for range 2 { // the second time it knows from the beginning
		returned.start(c.serveFlags()...)
		testenv.Eventually(t, "the old machine to be read-only", func() bool {
			status, e := returned.do("POST", "/buckets", map[string]any{"project": returned.project(), "name": "late"})
			return status != http.StatusOK && e.Error != nil && e.Error.Code == "read_only"
		})
		returned.stop()
	}

	// The recovered machine copies on, and can itself be lost.
	fresh.awaitCopied()
	had := query(t, fresh.connectionURL(shop.ID), "select count(*) from t")
	fresh.killAll()
	third := old.elsewhere()
	third.env = env
	third.recoverFrom(c)
	third.awaitAvailable(shop.ID)
	if got := query(t, third.connectionURL(shop.ID), "select count(*) from t"); got != had {
		t.Errorf("%s rows are back from the copy of the recovered machine, not %s", got, had)
	}
	if got := query(t, third.connectionURL(shop.ID), "select n from since"); got != "7" {
		t.Errorf("what changed since the first recovery: %s", got)
	}
	third.awaitAvailable(third.named("later").ID)
	l.holdsUntil(t, third, shop.ID, bucket, killed.Add(-allowedLoss), killed)
}

// named returns a database by its name.
func (m *machine) named(name string) (found database) {
	m.t.Helper()
	var all []struct{ ID, Name string }
	m.must("GET", "/databases", nil, &all)
	for _, d := range all {
		if d.Name == name {
			found.ID = d.ID
		}
	}
	return found
}

// awaitCopied waits until the copy has everything that happened before the call.
func (m *machine) awaitCopied() {
	m.t.Helper()
	began := time.Now()
	testenv.Eventually(m.t, "the copy to have everything", func() bool {
		var copied struct {
			Status string
			Point  *time.Time
		}
		m.must("GET", "/account/offsite", nil, &copied)
		return copied.Status == "copying" && copied.Point.After(began)
	})
}

// TestPointOfIdleMachine: right after a commit, the status does not say that the copy has it.
func TestPointOfIdleMachine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := m.prepareCopy(t)
	m.start(c.serveFlags()...)
	shop := m.createDatabase("shop")
	url := m.connectionURL(shop.ID)
	query(t, url, "create table t (n int)")
	m.awaitCopied()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	testenv.Catch(t, time.Minute, "an answer in time", func() bool {
		if _, err := conn.Exec(t.Context(), "insert into t values (1)"); err != nil {
			t.Fatal(err)
		}
		committed := time.Now()
		var copied wire.Offsite
		m.must("GET", "/account/offsite", nil, &copied)
		if time.Since(committed) > 300*time.Millisecond {
			return false // by now the copy may have it
		}
		if copied.Point.After(committed) {
			t.Errorf("committed at %s, and at once the point is %s", committed, copied.Point)
		}
		return true
	})
	m.awaitCopied()
}

// TestRecoverMoment brings back the middle of a load: databases and objects of the same second.
func TestRecoverMoment(t *testing.T) {
	t.Parallel()
	old := newMachine(t)
	c := old.prepareCopy(t)
	old.start(c.serveFlags()...)
	shop, bucket := old.prepareLoad(t)
	old.awaitCopied()
	var l acknowledged
	endLoad := l.load(t, old, old.connectionURL(shop.ID), bucket)
	time.Sleep(4 * time.Second) // load before the moment
	moment := time.Now()
	time.Sleep(4 * time.Second) // and after it
	endLoad()
	old.stop()

	fresh := old.elsewhere()
	fresh.recoverFrom(c, "--at", moment.UTC().Format(time.RFC3339Nano))
	fresh.awaitAvailable(shop.ID)
	l.holdsUntil(t, fresh, shop.ID, bucket, moment.Add(-time.Second), moment)
	rows, err := strconv.Atoi(query(t, fresh.connectionURL(shop.ID), "select count(*) from t"))
	// WAL of 100 ms has one time. A row can be in it before its commit is acknowledged.
	if most := before(l.rows, moment.Add(200*time.Millisecond)); err != nil || rows > most+1 {
		t.Errorf("%d rows are back, and %d were acknowledged by then, %v", rows, most, err)
	}
	last := len(l.objects) - 1
	if status, _ := fresh.do("GET", fmt.Sprintf("/buckets/%s/objects/o%d", bucket, last), nil); status != http.StatusNotFound {
		t.Errorf("object %d, of %s after the moment, is there: %d", last, l.objects[last].Sub(moment), status)
	}
}

// TestRecoverInterrupted kills a recovery at random moments, and begins it again each time.
func TestRecoverInterrupted(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	old, c, shop, url := startCopied(t)
	fill(t, url)
	want := query(t, url, checksum)
	old.backup(shop.ID)
	query(t, url, "create table later as select 7 n")
	old.stop()

	fresh := old.elsewhere()
	for range 12 {
		announced := fresh.launchRecover(c)
		select {
		case <-announced:
		case <-time.After(time.Duration(rand.IntN(1500)) * time.Millisecond):
		}
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) // a moment that no test chose
		fresh.killAll()
	}
	fresh.finishRecovery(c)
	fresh.awaitAvailable(shop.ID)
	if got := query(t, fresh.connectionURL(shop.ID), checksum); got != want {
		t.Errorf("%s is back, not %s", got, want)
	}
	if got := query(t, fresh.connectionURL(shop.ID), "select n from later"); got != "7" {
		t.Errorf("what followed the backup: %s", got)
	}
}

// TestRecoverAfterStop stops a machine under load: all that was acknowledged until then is in the copy.
func TestRecoverAfterStop(t *testing.T) {
	t.Parallel()
	old := newMachine(t)
	c := old.prepareCopy(t)
	old.start(c.serveFlags()...)
	shop, bucket := old.prepareLoad(t)
	var l acknowledged
	end := l.load(t, old, old.connectionURL(shop.ID), bucket)
	testenv.Eventually(t, "load", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.rows) > 20 && len(l.objects) > 20
	})
	old.stop()
	stopped := time.Now()
	end()
	fresh := old.elsewhere()
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	if rows, objects := l.holdsUntil(t, fresh, shop.ID, bucket, stopped, stopped); rows+objects > 0 {
		t.Errorf("the last %s of rows and %s of objects are missing", rows, objects)
	}
}

// TestRecoverLacking removes the body of an object from the copy: everything else comes back, and the report says what
// does not.
func TestRecoverLacking(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	old := newMachine(t)
	c := old.prepareWithPassphrase(t)
	old.start(c.serveFlags()...)
	shop, bucket := old.createDatabase("shop"), old.createBucket("files")
	query(t, old.connectionURL(shop.ID), "create table t as select 7 n")
	old.backup(shop.ID)
	const size = 7 << 20 // more than anything else in the copy
	random := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(random)
	old.must("POST", "/buckets/"+bucket+"/objects?key=large", bytes.NewReader(random), nil)
	old.must("POST", "/buckets/"+bucket+"/objects?key=small", strings.NewReader("7"), nil)
	old.awaitCopied()
	old.stop()
	removeFile(t, c, func(n int64) bool { return n >= size })
	fresh := old.elsewhere()
	out, _, code := fresh.run("", "offsite", "verify", c.url, "--passphrase-file", c.passphrase)
	if code != 1 || !strings.Contains(out, "newest point") || !strings.Contains(out, ", large objects:") || !strings.Contains(out, "recoverable   everything else") {
		t.Errorf("verify: %d\n%s", code, out)
	}
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	if got := query(t, fresh.connectionURL(shop.ID), "select n from t"); got != "7" {
		t.Errorf("the database has %s", got)
	}
	testenv.Eventually(t, "the report", func() bool {
		var report wire.Offsite
		fresh.must("GET", "/account/offsite", nil, &report)
		return report.Recovery.EndedAt != nil && report.Recovery.ObjectsDamaged == 1
	})
	var object struct {
		URL string `json:"download_url"`
	}
	fresh.must("GET", "/buckets/"+bucket+"/objects/small", nil, &object)
	if status, got := download(t, object.URL); status != http.StatusOK || got != "7" {
		t.Errorf("the small object: %d %q", status, got)
	}
}

// startCopied starts an appliance with a database whose copy is in a directory.
func startCopied(t testing.TB) (m *machine, c copied, shop database, url string) {
	t.Helper()
	m = newMachine(t)
	c = m.prepareCopy(t)
	m.start(c.serveFlags()...)
	shop = m.createDatabase("shop")
	return m, c, shop, m.connectionURL(shop.ID)
}

// recoverRows recovers a machine elsewhere, whose database must come back with the rows of t, and returns after the end
// of the recovery.
func recoverRows(t testing.TB, old *machine, c copied, shop database, rows string) *machine {
	t.Helper()
	fresh := old.elsewhere()
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	if got := query(t, fresh.connectionURL(shop.ID), "select string_agg(n::text, ' ' order by n) from t"); got != rows {
		t.Errorf("the database has %s, not %s", got, rows)
	}
	testenv.Eventually(t, "the report", func() bool { return strings.Contains(fresh.log.String(), "the recovery is complete") })
	return fresh
}

// removeFile removes the one file of a copy in a directory whose size is chosen.
func removeFile(t testing.TB, c copied, is func(size int64) bool) {
	t.Helper()
	removed := 0
	if err := filepath.WalkDir(strings.TrimPrefix(c.url, "file://"), func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || info.IsDir() || !is(info.Size()) {
			return errors.Join(err, statErr)
		}
		removed++
		return os.Remove(path)
	}); err != nil || removed != 1 {
		t.Fatalf("%d files were removed, %v", removed, err)
	}
}

// TestRecoverLackingWAL: a segment of a database's WAL cannot be read when the last checkpoint is made: the copy's log has it. Or it is
// damaged: the database comes back as it was before that segment. The report says so.
func TestRecoverLackingWAL(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for _, lack := range []struct {
		name       string
		do         func(segment string) error
		rows, says string
	}{
		{"unreadable", func(segment string) error { return os.Chmod(segment, 0) }, "1 2 3", "the database shop could not be read when the newest checkpoint was made"},
		{"damaged", func(segment string) error { return os.Truncate(segment, 1000) }, "1 2", "WAL of the database shop is missing"},
	} {
		t.Run(lack.name, func(t *testing.T) {
			t.Parallel()
			recoverLackingWAL(t, lack.do, lack.rows, lack.says)
		})
	}
}

func recoverLackingWAL(t *testing.T, lack func(segment string) error, rows, says string) {
	t.Helper()
	old, c, shop, url := startCopied(t)
	query(t, url, "create table t as select 1 n")
	old.backup(shop.ID)
	segments := func() []string {
		all, err := filepath.Glob(filepath.Join(old.dataDir, "backups", shop.ID, "wal", "1", "*.zst"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := len(segments())
	query(t, url, "insert into t values (2)")
	query(t, url, "create table filler as select repeat('x', 1000) from generate_series(1, 70000)") // four segments
	query(t, url, "insert into t values (3)")
	testenv.Eventually(t, "archived segments", func() bool { return len(segments()) >= before+4 })
	old.awaitCopied() // so that the log needs no file any more
	if err := lack(segments()[before+2]); err != nil {
		t.Fatal(err)
	}
	old.stop()
	fresh := recoverRows(t, old, c, shop, rows)
	if !strings.Contains(fresh.log.String(), says) {
		t.Errorf("the report does not say that %s:\n%s", says, fresh.log.String())
	}
}

// TestRecoverDamagedBackup removes a pack of a database's newest backup from the copy: the one before and the WAL lead as far.
func TestRecoverDamagedBackup(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	old, c, shop, url := startCopied(t)
	query(t, url, "create table t as select 1 n")
	old.backup(shop.ID)
	// It does not compress, so that no other file has the size of the pack with it.
	query(t, url, "create table random as select string_agg(decode(md5(n::text), 'hex'), '') from generate_series(1, 800000) n")
	damaged := old.backup(shop.ID)
	query(t, url, "insert into t values (2)")
	old.awaitCopied()
	old.stop()
	var largest int64
	packs, err := filepath.Glob(filepath.Join(old.dataDir, "backups", shop.ID, "repository", "packs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pack := range packs {
		if info, err := os.Stat(pack); err == nil {
			largest = max(largest, info.Size())
		}
	}
	removeFile(t, c, func(size int64) bool { return size >= largest && size < largest+largest/100 })
	fresh := recoverRows(t, old, c, shop, "1 2")
	if !strings.Contains(fresh.log.String(), "a backup of the database shop is damaged, and the earlier one") {
		t.Errorf("the report does not say so:\n%s", fresh.log.String())
	}
	var b wire.Backup
	if fresh.must("GET", "/databases/"+shop.ID+"/backups/"+damaged.ID, nil, &b); b.Verification.Status != wire.VerificationFailed {
		t.Errorf("the backup is %s", b.Verification.Status)
	}
}

// TestRecoverRefuses checks what recover refuses, and that it changes nothing then.
func TestRecoverRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := m.prepareWithPassphrase(t)
	m.start()
	m.stop()
	empty := newMachine(t)
	for _, step := range []struct {
		on   *machine
		args string
		code int
		says string
	}{
		{empty, "--passphrase-file " + c.passphrase + " --at yesterday", 2, "is not a time such as"},
		{empty, "--passphrase-file " + c.passphrase + " --at 2999-01-01T00:00:00Z", 2, "in the future"},
		{empty, "", 2, "--passphrase-file names a file"},
		{empty, "--passphrase-file " + c.passphrase + " --list", 6, "no appliance has copied anything"},
		{empty, "--passphrase-file " + c.passphrase + " --yes", 6, "no appliance has copied anything"},
		{m, "--passphrase-file " + c.passphrase + " --yes", 6, "is not empty"},
	} {
		args := append([]string{"recover", c.url, "--listen", "127.0.0.1:0"}, strings.Fields(step.args)...)
		out, stderr, code := step.on.run("", args...)
		if code != step.code || !strings.Contains(out+stderr, step.says) {
			t.Errorf("recover %s: exit code %d, %s%s", step.args, code, out, stderr)
		}
	}
	for _, test := range []struct{ environment, says string }{ // as for every command, flags may be variables
		{"HOLDFAST_AT=yesterday", "is not a time such as"},
		{"HOLDFAST_LIST=perhaps", "HOLDFAST_LIST"},
		{"HOLDFAST_AT=2001-01-01T00:00:00Z", "no appliance has copied anything"},
	} {
		var stderr strings.Builder
		cmd := empty.command("recover", c.url, "--listen", "127.0.0.1:0", "--yes")
		cmd.Env = append(cmd.Environ(), test.environment, "HOLDFAST_PASSPHRASE_FILE="+c.passphrase)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), test.says) {
			t.Errorf("recover with %s: %v, %s", test.environment, err, stderr.String())
		}
	}
	if entries, err := os.ReadDir(empty.dataDir); err == nil && len(entries) > 0 {
		t.Errorf("the data directory has %v", entries)
	}
}

// TestRecoverOnly brings back one database of two and then the other, and sees the recovery points and the report.
func TestRecoverOnly(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	old := newMachine(t)
	c := old.prepareWithPassphrase(t)
	old.start(c.serveFlags()...)
	shop, wiki := old.createDatabase("shop"), old.createDatabase("wiki")
	for _, db := range []database{shop, wiki} {
		query(t, old.connectionURL(db.ID), "create table t as select 7 n")
		old.backup(db.ID)
	}
	old.awaitCopied()
	var streams struct {
		Streams []struct {
			Stream     string
			DatabaseID *string `json:"database_id"`
			LagSeconds float64 `json:"lag_seconds"`
		}
	}
	old.must("GET", "/account/offsite", nil, &streams)
	seen := map[string]bool{}
	for _, s := range streams.Streams {
		if s.DatabaseID != nil {
			seen[*s.DatabaseID] = true
		}
		seen[s.Stream] = true
	}
	for _, want := range []string{"metadata", "objects", "large_objects", "backups", "wal", shop.ID, wiki.ID} {
		if !seen[want] {
			t.Errorf("no recovery point of %s: %+v", want, streams.Streams)
		}
	}
	var protection struct {
		Offsite struct {
			Point      *time.Time
			LagSeconds *float64 `json:"lag_seconds"`
		}
	}
	old.must("GET", "/databases/"+shop.ID+"/recovery", nil, &protection)
	if protection.Offsite.Point == nil || protection.Offsite.LagSeconds == nil {
		t.Errorf("the copy of the database: %+v", protection.Offsite)
	}
	late := old.createDatabase("late") // the newest checkpoint need not have it
	query(t, old.connectionURL(late.ID), "create table t as select 8 n")
	testenv.Within(t, 30*time.Second, "the first backup, which does not wait", func() bool {
		var backups []wire.Backup
		old.must("GET", "/databases/"+late.ID+"/backups", nil, &backups)
		return len(backups) == 1 && backups[0].Status == "completed"
	})
	old.awaitCopied()
	old.killAll()

	fresh := old.elsewhere()
	_, stderr, code := fresh.run("", "recover", c.url, "--passphrase-file", c.passphrase, "--yes", "--take-over", "--only", "nothing", "--listen", "127.0.0.1:0")
	if code == 0 || !strings.Contains(stderr, `only: the copy has no database "nothing", but late, shop, wiki`) {
		t.Errorf("a database that is not there: %d %s", code, stderr)
	}
	if entries, err := os.ReadDir(fresh.dataDir); err == nil && len(entries) > 0 {
		t.Errorf("a typing error took the copy over: %v", entries)
	}
	fresh.recoverFrom(c, "--only", "wiki")
	fresh.awaitAvailable(wiki.ID)
	var left struct {
		Status string
	}
	testenv.Eventually(t, "the other database to be left in the copy", func() bool {
		fresh.must("GET", "/databases/"+shop.ID, nil, &left)
		return left.Status == "failed"
	})
	var first struct {
		Recovery struct{ Databases []wire.RecoveredDatabase }
	}
	fresh.must("GET", "/account/offsite", nil, &first)
	for _, d := range first.Recovery.Databases {
		if d.Left != (d.DatabaseID != wiki.ID) {
			t.Errorf("left in the copy: %+v", d)
		}
	}
	fresh.awaitCopied() // without the files of the other one
	fresh.stop()
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	if got := query(t, fresh.connectionURL(shop.ID), "select n from t"); got != "7" {
		t.Errorf("the database that came later has %s", got)
	}
	testenv.Eventually(t, "the report", func() bool {
		var report struct {
			Recovery struct {
				EndedAt   *time.Time `json:"ended_at"`
				Databases []wire.RecoveredDatabase
			}
		}
		fresh.must("GET", "/account/offsite", nil, &report)
		return report.Recovery.EndedAt != nil && len(report.Recovery.Databases) == 3 &&
			!slices.ContainsFunc(report.Recovery.Databases, func(d wire.RecoveredDatabase) bool { return !d.Done })
	})
	if got := query(t, fresh.connectionURL(late.ID), "select n from t"); got != "8" {
		t.Errorf("the new database has %s", got)
	}
}
