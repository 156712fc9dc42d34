package offsite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// gatedStore is a store that is away while its gate is held.
type gatedStore struct {
	objectstore.Store
	gate sync.RWMutex
}

func (s *gatedStore) Create(ctx context.Context, key string, body objectstore.Body, o objectstore.CreateOptions) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.Store.Create(ctx, key, body, o)
}

func gatedRepository(t testing.TB) (*stream.Repository, *gatedStore) {
	t.Helper()
	store, err := objectstore.Open(t.Context(), "file://"+t.TempDir(), objectstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	keys, err := sealed.NewRing(sealed.NewKey(1))
	if err != nil {
		t.Fatal(err)
	}
	gated := &gatedStore{Store: store}
	r, err := stream.NewRepository(gated, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r, gated
}

// counter is metadata in which every transaction changes several things that must
// agree.
type counter struct {
	db   *meta.DB
	last int
}

func chain() meta.Chain { return meta.Chain{Key: []byte("test"), Keep: 40} }

func openMetadata(t testing.TB, path string) *meta.DB {
	t.Helper()
	db, err := meta.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// step makes the next transaction, with a setting of so many random bytes.
func (c *counter) step(t testing.TB, size int) {
	t.Helper()
	c.last++
	n := c.last
	data := make([]byte, size)
	_, _ = rand.Read(data)
	if err := c.db.Update(func(tx *meta.Tx) error {
		p := model.Project{ID: fmt.Sprintf("proj_%09d", n), Organization: "org_1", Name: strconv.Itoa(n)}
		entry := model.AuditEntry{ID: fmt.Sprintf("evt_%026d", n), At: time.Unix(int64(n), 0), Organization: "org_1", Action: model.ActionDatabaseGet}
		err := errors.Join(
			tx.PutSetting("count", []byte(strconv.Itoa(n))), tx.PutSetting("same at the end", []byte(strconv.Itoa(n))), tx.PutSetting(fmt.Sprintf("data %d", n%37), data),
			tx.Projects().Insert(p), tx.AppendAudit(chain(), &entry),
			tx.PutSample("db_1", model.Series{Name: "s", Step: time.Second, Keep: 20}, model.Sample{At: time.Unix(int64(n), 0)}))
		if old := n - 100; old > 0 {
			err = errors.Join(err, tx.Projects().Delete(fmt.Sprintf("proj_%09d", old)))
		}
		if n%10 == 0 {
			err = errors.Join(err, tx.DropSamples("db_1"))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// check returns which transaction is the newest, after it has compared all that must agree.
func (c *counter) check(t testing.TB) (n int) {
	t.Helper()
	if err := c.db.View(func(tx *meta.Tx) error {
		n, _ = strconv.Atoi(string(tx.Setting("count")))
		if end := string(tx.Setting("same at the end")); n > 0 && end != strconv.Itoa(n) {
			t.Errorf("after %d, the end is of %s", n, end)
		}
		projects, err := tx.Projects().Where(func(model.Project) bool { return true })
		if want := min(n, 100); len(projects) != want || n > 0 && projects[want-1].Name != strconv.Itoa(n) {
			t.Errorf("after %d, there are %d projects", n, len(projects))
		}
		samples, err2 := tx.Samples("db_1", model.Series{Name: "s", Step: time.Second, Keep: 20}, time.Time{})
		if want := n % 10; len(samples) != want {
			t.Errorf("after %d, there are %d samples", n, len(samples))
		}
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	v, err := c.db.VerifyAudit(chain(), "org_1", "")
	if err != nil || len(v.Faults) > 0 || v.Entries != min(n, 40) {
		t.Errorf("after %d, the audit log has %d entries: %v %v", n, v.Entries, v.Faults, err)
	}
	return n
}

// restoreMetadata brings back what a repository has at a time.
func restoreMetadata(t testing.TB, r *stream.Repository, at time.Time) (*counter, error) {
	t.Helper()
	entries, frames, err := readMetadata(t, r, at)
	if err != nil {
		return nil, err
	}
	return rebuildMetadata(t, r, entries, frames)
}

// readMetadata reads the newest checkpoint at or before a time, if there is one, and the
// log after it.
func readMetadata(t testing.TB, r *stream.Repository, at time.Time) (entries []stream.Entry, frames []stream.Frame, err error) {
	t.Helper()
	h, err := r.History(t.Context())
	if err != nil {
		return nil, nil, err
	}
	point, err := h.Find(t.Context(), at)
	if err != nil && (!errors.Is(err, stream.ErrNoPoint) || !at.IsZero()) {
		return nil, nil, err
	}
	if point != nil {
		for e, err := range r.Catalog(t.Context(), point) {
			if err != nil {
				return nil, nil, err
			}
			entries = append(entries, e)
		}
	}
	for f, err := range h.Frames(t.Context(), point, at) {
		if err != nil {
			return nil, nil, err
		}
		frames = append(frames, f)
	}
	return entries, frames, nil
}

func rebuildMetadata(t testing.TB, r *stream.Repository, entries []stream.Entry, frames []stream.Frame) (*counter, error) {
	t.Helper()
	dir := t.TempDir()
	restore, err := newMetadataRestorer(r, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := restore.entry(t.Context(), e); err != nil {
			return nil, err
		}
	}
	for _, f := range frames {
		if err := restore.frame(t.Context(), f); err != nil {
			return nil, err
		}
	}
	if err := restore.finish(t.Context()); err != nil {
		return nil, err
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*restoring*")); len(left) > 0 {
		t.Errorf("the restorer leaves %v", left)
	}
	return &counter{db: openMetadata(t, filepath.Join(dir, core.MetadataFile))}, nil
}

// metadataRun is one run of the part, with a writer of its own.
type metadataRun struct {
	part   *metadataPart
	writer *stream.Writer
	known  *known
}

func beginRun(t testing.TB, r *stream.Repository, db *meta.DB) *metadataRun {
	t.Helper()
	h := claimEpoch(t, r)
	o := stream.Options{Interval: 2 * time.Millisecond}
	var err error
	if o.Previous, err = h.Find(t.Context(), time.Time{}); err != nil && !errors.Is(err, stream.ErrNoPoint) {
		t.Fatal(err)
	}
	run := &metadataRun{part: newMetadataPart(db)}
	if run.known, err = readKnown(t.Context(), r, h, o.Previous); err != nil {
		t.Fatal(err)
	}
	if run.writer, err = stream.NewWriter(t.Context(), h, o); err != nil {
		t.Fatal(err)
	}
	if err := run.part.start(run.writer, run.known); err != nil {
		t.Fatal(err)
	}
	return run
}

// kill ends a run without storing anything more.
func (r *metadataRun) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.writer.Close(ctx)
	r.part.stop()
}

func (r *metadataRun) checkpoint(t testing.TB) {
	t.Helper()
	if _, err := r.writer.Checkpoint(t.Context(), r.part.entries); err != nil {
		t.Fatal(err)
	}
}

func (r *metadataRun) flush(t testing.TB) {
	t.Helper()
	if _, err := r.writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestMetadataAfterKills changes the metadata, makes checkpoints and kills the run, at
// random. What is brought back is a state between two transactions, and not an older one than that
// of the newest flush.
func TestMetadataAfterKills(t *testing.T) {
	t.Parallel()
	r, _ := gatedRepository(t)
	c := &counter{db: openMetadata(t, filepath.Join(t.TempDir(), "meta.db"))}
	for range 8 {
		run := beginRun(t, r, c.db)
		stored := 0
		ctx, cancel := context.WithCancel(t.Context())
		var beside sync.WaitGroup
		if mathrand.N(4) > 0 {
			beside.Go(func() {
				for ctx.Err() == nil {
					_, _ = run.writer.Checkpoint(ctx, run.part.entries)
				}
			})
		}
		for range mathrand.N(120) {
			c.step(t, mathrand.N(120_000))
			if mathrand.N(10) == 0 {
				run.flush(t)
				stored = c.last
			}
		}
		run.kill()
		cancel()
		beside.Wait()
		back, err := restoreMetadata(t, r, time.Time{})
		if stored == 0 && errors.Is(err, stream.ErrNoPoint) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := back.check(t); n < stored || n > c.last {
			t.Errorf("transaction %d is the newest; %d was stored and %d made", n, stored, c.last)
		}
	}
}

// TestMetadataCutAnywhere changes everything while a snapshot is half read, and cuts the
// log at every frame.
func TestMetadataCutAnywhere(t *testing.T) {
	t.Parallel()
	r, store := gatedRepository(t)
	c := &counter{db: openMetadata(t, filepath.Join(t.TempDir(), "meta.db"))}
	change := func() {
		for range 38 {
			c.step(t, 220<<10)
		}
	}
	change()
	run := beginRun(t, r, c.db)
	run.checkpoint(t)
	run.kill()
	first := c.last
	change()
	run = beginRun(t, r, c.db)
	store.gate.Lock() // while the snapshot is being read
	for range 20 {
		c.step(t, 100<<10)
	}
	store.gate.Unlock()
	run.flush(t)
	run.kill()
	entries, frames, err := readMetadata(t, r, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	last := first
	for k := range len(frames) + 1 {
		back, err := rebuildMetadata(t, r, entries, frames[:k])
		if err != nil {
			t.Fatal(err)
		}
		n := back.check(t)
		if n < last {
			t.Errorf("after %d of %d frames, the newest is %d, and was %d", k, len(frames), n, last)
		}
		last = n
	}
	if last != c.last {
		t.Errorf("the newest is %d of %d", last, c.last)
	}
}

// TestMetadataOfAMoment brings back what was there at several times.
func TestMetadataOfAMoment(t *testing.T) {
	t.Parallel()
	r, _ := gatedRepository(t)
	c := &counter{db: openMetadata(t, filepath.Join(t.TempDir(), "meta.db"))}
	run := beginRun(t, r, c.db)
	moments := map[int]time.Time{}
	for i := range 60 {
		if i%20 == 3 {
			run.checkpoint(t)
		}
		c.step(t, 100)
		if i > 10 && i%7 == 0 {
			moments[c.last] = time.Now()
			time.Sleep(time.Millisecond) // so that the next transaction is of a later moment
		}
	}
	run.flush(t)
	run.kill()
	for n, at := range maps.All(moments) {
		back, err := restoreMetadata(t, r, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.check(t); got != n {
			t.Errorf("at the moment of %d, the newest is %d", n, got)
		}
	}
}

// TestMetadataAfterTooManyChanges changes more than the queue takes while the store is away.
// The changes until then are stored when it comes back, then a snapshot, without a
// checkpoint.
func TestMetadataAfterTooManyChanges(t *testing.T) {
	t.Parallel()
	r, store := gatedRepository(t)
	c := &counter{db: openMetadata(t, filepath.Join(t.TempDir(), "meta.db"))}
	run := beginRun(t, r, c.db)
	for range 3 {
		c.step(t, 1000)
	}
	run.checkpoint(t)
	for round := range 2 {
		store.gate.Lock()
		for range 75 {
			c.step(t, 1<<20)
		}
		if s := run.part.source.capture.Status(); !s.Paused || s.Bytes > captureLimit {
			t.Fatalf("after too many changes, the status is %+v", s)
		}
		if run.writer.Status().Lag == 0 {
			t.Error("changes are missing, and there is no lag")
		}
		store.gate.Unlock()
		if round == 1 {
			run.checkpoint(t)
		}
		run.flush(t)
		back, err := restoreMetadata(t, r, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if n := back.check(t); n != c.last {
			t.Errorf("the newest is %d of %d", n, c.last)
		}
		c.step(t, 10)
	}
	run.flush(t)
	run.kill()
	back, err := restoreMetadata(t, r, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if n := back.check(t); n != c.last {
		t.Errorf("at the end, the newest is %d of %d", n, c.last)
	}
}

// TestALargeTransactionIsNotDivided makes one that needs several frames, and cuts the log in
// the middle of them.
func TestALargeTransactionIsNotDivided(t *testing.T) {
	t.Parallel()
	redo := meta.Redo{Transaction: 7}
	for i := range 5 {
		redo.Changes = append(redo.Changes, meta.Change{Bucket: []string{"settings"}, Key: []byte{'a' + byte(i)}, Value: make([]byte, 1<<20)})
	}
	frames := framesOf(redo)
	if len(frames) < 3 {
		t.Fatalf("%d frames", len(frames))
	}
	path := filepath.Join(t.TempDir(), "b.db")
	builder, err := meta.NewBuilder(path)
	if err != nil {
		t.Fatal(err)
	}
	db := openMetadata(t, filepath.Join(t.TempDir(), "meta.db"))
	for chunk, err := range db.Chunks() {
		if err := errors.Join(err, builder.Load(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	restore := &metadataRestorer{now: &metadataCopy{Builder: builder, path: path}}
	for _, f := range frames[:len(frames)-1] {
		if err := restore.frame(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	other := stream.Frame{Body: stream.Meta{Transaction: 8, Changes: []stream.MetaChange{{Bucket: []string{"settings"}, Key: []byte("z"), Value: []byte("1")}}}}
	for _, f := range append([]stream.Frame{other}, frames...) {
		if err := restore.frame(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := builder.Finish(); err != nil {
		t.Fatal(err)
	}
	rebuilt := openMetadata(t, path)
	_ = rebuilt.View(func(tx *meta.Tx) error {
		if len(tx.Setting("a")) != 1<<20 || len(tx.Setting("e")) != 1<<20 || string(tx.Setting("z")) != "1" {
			t.Error("a transaction is not whole")
		}
		return nil
	})
}

// TestUnchangedMetadataAreNotStoredAgain counts what a second run and a second checkpoint
// store.
func TestUnchangedMetadataAreNotStoredAgain(t *testing.T) {
	t.Parallel()
	r, _ := gatedRepository(t)
	c := &counter{db: openMetadata(t, filepath.Join(t.TempDir(), "meta.db"))}
	for range 20 {
		c.step(t, 200<<10)
	}
	for i := range 3 {
		run := beginRun(t, r, c.db)
		run.checkpoint(t)
		run.checkpoint(t)
		if files := run.writer.Status().Counts.Files; i > 0 && files > 0 || i == 0 && files < 3 {
			t.Errorf("run %d stores %d files", i, files)
		}
		run.kill()
	}
}
