package cli_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// followMoments are what a test can meet of an import that follows: its status, and during the cutover its phase.
var followMoments = []string{"following", "waiting for the last changes", "sequences and numbers of rows", "completing the copy", "completed"}

// TestKillDuringFollow kills the appliance, the new database's server, or both while the database follows a source that is
// written to, and at every moment of the cutover: at each moment one of them, in runs of everything each. Afterwards the
// new database has what the writer was told it had written.
func TestKillDuringFollow(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	source := startFollowed(t)
	m := newMachine(t)
	m.startFollower()
	w := &modelWriter{rows: map[int64]int64{}}
	for n, moment := range followMoments {
		for v, who := range allVictims {
			if v != n%len(allVictims) && !testenv.IsAll() {
				continue
			}
			t.Logf("kill %+v when %q", who, moment)
			i := m.follow(source.replication)
			w.begin(t, source.owner)
			before := w.written()
			if moment == "following" {
				m.crash(who)
			}
			testenv.Eventually(t, "more rows", func() bool { return w.written() > before+200 })
			w.end()
			if moment != "following" {
				m.cutOver(i.ID)
				met := m.catchImport(i.ID, func(i wire.Import) bool { return followMoment(i) >= slices.Index(followMoments, moment) })
				m.crash(who)
				t.Logf("it was %s (%s)", met.Status, met.Phase)
			}
			m.endFollow(i.ID)
			w.compare(t, m.connectionURL(i.DatabaseID))
			if got := query(t, source.owner, "select count(*) from pg_replication_slots where slot_name like 'holdfast_imp%'"); got != "0" {
				t.Errorf("there are %s slots left", got)
			}
			m.must("DELETE", "/databases/"+i.DatabaseID, nil, nil)
		}
	}
}

// followed is a database that others may follow: the URLs of its owner and of the role that may replicate.
type followed struct{ owner, replication string }

// startFollowed starts a machine with a database that can be followed.
func startFollowed(t *testing.T) followed {
	t.Helper()
	m := newMachine(t)
	m.start("--no-exports")
	return m.createFollowed(t)
}

// startFollower starts a machine for databases of version 18 that follow, with a key that may do everything.
func (m *machine) startFollower(flags ...string) {
	m.t.Helper()
	m.env = append(m.env, "PATH="+postgrestest.Major(m.t, 18).Dir+":"+os.Getenv("PATH"))
	m.start(append(flags, "--no-exports")...)
	m.key = createKey(m.t, m, "--preset", "full_access", "--allow-dangerous")
}

func (m *machine) createFollowed(t *testing.T) followed {
	t.Helper()
	var db database
	m.must("POST", "/databases", map[string]any{"project": m.project(), "name": "source", "logical_replication": true}, &db)
	var r wire.Replication
	m.must("GET", "/databases/"+db.ID+"/replication", nil, &r)
	f := followed{m.connectionURL(db.ID), r.Connection.ConnectionURL}
	for _, sql := range []string{
		"create table numbers (id bigserial primary key, n bigint not null)",
		"create table pad as select id, repeat('x', 100) as pad from generate_series(1, 100000) id",
		"alter table pad add primary key (id)",
		"create publication everything for table numbers, pad",
	} {
		query(t, f.owner, sql)
	}
	return f
}

// follow starts an import and waits until the new database follows.
func (m *machine) follow(source string) (i wire.Import) {
	m.t.Helper()
	m.must("POST", "/imports", map[string]any{"project": m.project(), "name": "moved", "source_url": source, "mode": "follow", "publication": "everything"}, &i)
	return m.awaitImport(i.ID, isFollowing)
}

func isFollowing(i wire.Import) bool {
	return i.Status == "following" && i.Following.LagBytes != nil && i.Following.Trouble == nil
}

// awaitImport waits until an import is as it should be.
func (m *machine) awaitImport(id string, reached func(wire.Import) bool) wire.Import {
	m.t.Helper()
	return m.pollImport(testenv.Within, id, reached)
}

// catchImport is awaitImport for what an import is only for a moment.
func (m *machine) catchImport(id string, reached func(wire.Import) bool) wire.Import {
	m.t.Helper()
	return m.pollImport(testenv.Catch, id, reached)
}

func (m *machine) pollImport(poll func(testing.TB, time.Duration, string, func() bool) time.Duration, id string, reached func(wire.Import) bool) (i wire.Import) {
	m.t.Helper()
	defer func() {
		if m.t.Failed() {
			m.t.Logf("the import is %s (%s): %+v", i.Status, i.Phase, i.Following)
		}
	}()
	poll(m.t, 2*time.Minute, "an import that is as it should be", func() bool {
		m.must("GET", "/imports/"+id, nil, &i)
		if i.Status == "failed" {
			m.t.Fatalf("the import has failed: %s", *i.Error)
		}
		return reached(i)
	})
	return i
}

// followMoment returns the place of an import's state in followMoments.
func followMoment(i wire.Import) int {
	switch {
	case strings.HasPrefix(string(i.Status), "completed"):
		return len(followMoments) - 1
	case i.Status == "following":
		return 0
	default:
		return slices.Index(followMoments, i.Phase)
	}
}

// cutOver asks for the cutover, whose answer may be lost with the appliance.
func (m *machine) cutOver(id string) {
	done := make(chan struct{})
	m.t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		m.do("POST", "/imports/"+id+"/cutover", nil)
	}()
}

// endFollow completes a cutover that was decided, or asks for one until it is complete.
func (m *machine) endFollow(id string) {
	m.t.Helper()
	for {
		i := m.awaitImport(id, func(i wire.Import) bool { return isFollowing(i) || followMoment(i) == len(followMoments)-1 })
		if i.Status != "following" {
			if i.Status != "completed" {
				m.t.Fatalf("the import is %s: %+v", i.Status, i.Errors)
			}
			m.awaitAnswer(i.DatabaseID, m.connectionURL(i.DatabaseID))
			return
		}
		m.do("POST", "/imports/"+id+"/cutover", nil)
	}
}

// modelWriter inserts, changes and deletes rows, and knows which there are.
type modelWriter struct {
	mu   sync.Mutex
	rows map[int64]int64
	acks int
	stop chan struct{}
	wait sync.WaitGroup
}

func (w *modelWriter) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acks
}

// begin writes until end, one statement after the other.
func (w *modelWriter) begin(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	w.stop = make(chan struct{})
	w.wait.Go(func() {
		defer conn.Close(t.Context())
		for n := int64(1); ; n++ {
			select {
			case <-w.stop:
				return
			default:
			}
			if err := w.write(t, conn, n); err != nil {
				t.Errorf("write: %v", err)
				return
			}
		}
	})
}

func (w *modelWriter) end() {
	close(w.stop)
	w.wait.Wait()
}

func (w *modelWriter) write(t *testing.T, conn *pgx.Conn, n int64) error {
	var id int64
	if err := conn.QueryRow(t.Context(), "insert into numbers (n) values ($1) returning id", n).Scan(&id); err != nil {
		return err
	}
	changed, deleted := id-n%5-1, id-500
	if _, err := conn.Exec(t.Context(), "update numbers set n = n + 1 where id = $1", changed); err != nil {
		return err
	}
	if _, err := conn.Exec(t.Context(), "delete from numbers where id = $1", deleted); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks++
	w.rows[id] = n
	if _, ok := w.rows[changed]; ok {
		w.rows[changed]++
	}
	delete(w.rows, deleted)
	return nil
}

// compare compares a database with the model, and writes to it once, as the programs that move there do.
func (w *modelWriter) compare(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), "select id, n from numbers")
	got := map[int64]int64{}
	var id, n, pads int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { got[id] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, w.rows) {
		t.Errorf("the database has %d rows, the model %d: %s", len(got), len(w.rows), difference(got, w.rows))
	}
	if err := conn.QueryRow(t.Context(), "select count(*) from pad").Scan(&pads); err != nil || pads != 100_000 {
		t.Errorf("the other table has %d rows; %v", pads, err)
	}
	if err := conn.QueryRow(t.Context(), "insert into numbers (n) values (0) returning id").Scan(&id); err != nil || id <= slices.Max(slices.Collect(maps.Keys(w.rows))) {
		t.Errorf("the next row has the id %d; %v", id, err)
	}
}

// difference names a few rows that are not the same.
func difference(got, want map[int64]int64) string {
	var found []string
	for id, n := range want {
		if m, ok := got[id]; !ok || m != n {
			found = append(found, fmt.Sprintf("%d is %d, not %d", id, m, n))
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			found = append(found, fmt.Sprintf("%d is too many", id))
		}
	}
	slices.Sort(found)
	return strings.Join(found[:min(len(found), 5)], "; ")
}
