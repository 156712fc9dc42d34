package offsite

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/backup/wal"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// TestRecoverFromAnotherCopy: a recovery goes on from its own copy only.
func TestRecoverFromAnotherCopy(t *testing.T) {
	t.Parallel()
	own, _ := preparedDirectory(t)
	other, _ := preparedDirectory(t)
	want, got := own.open(t).marker.Repository, other.open(t).marker.Repository
	dir := t.TempDir()
	plan, err := newPlan(dir, recoveryPlan{Format: recoveryFormat, Repository: want, Step: stepServe})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Location{own, other} {
		s := &Service{location: at, recovery: &secondPhase{store: plan}}
		_, read := s.reader(t.Context())
		s.closeReader()
		_, again := Recover(t.Context(), RecoverOptions{Location: at, DataDir: dir})
		for _, err := range []error{read, again} {
			if at.URL == own.URL {
				if err != nil {
					t.Errorf("of its own copy: %v", err)
				}
				continue
			}
			if err == nil || isAboutStore(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), got) {
				t.Errorf("of another copy: %v", err)
			}
		}
	}
}

// TestCopyDuringRecovery: a machine whose recovery is not complete copies to no other store.
func TestCopyDuringRecovery(t *testing.T) {
	t.Parallel()
	own, _ := preparedDirectory(t)
	other, _ := preparedDirectory(t)
	plan, err := newPlan(t.TempDir(), recoveryPlan{Format: recoveryFormat, Repository: own.open(t).marker.Repository, Step: stepServe})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Location{own, other} {
		s := &Service{location: at, recovery: &secondPhase{store: plan}}
		c, _, err := s.connect(t.Context())
		if err == nil {
			_ = c.close()
		}
		if (err == nil) != (at.URL == own.URL) {
			t.Errorf("%s: %v", at.URL, err)
		}
	}
}

// TestRecoverKeepsWhatIsNotItsOwn: a recovery that goes on refuses a directory into which somebody put something else.
func TestRecoverKeepsWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	at, _ := preparedDirectory(t)
	at.open(t).copyOnce(t, "content")
	dir := t.TempDir()
	if _, err := newPlan(dir, recoveryPlan{Format: recoveryFormat, Repository: at.open(t).marker.Repository, Step: stepFiles}); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(precious, []byte("the only copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Recover(t.Context(), RecoverOptions{Location: at, DataDir: dir, Progress: func(Progress) {}})
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("recover: %v", err)
	}
	own := filepath.Join(dir, "blobs")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (&firstPhase{o: RecoverOptions{DataDir: dir}}).clear(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Error("what the recovery had begun is there")
	}
	if text, err := os.ReadFile(precious); string(text) != "the only copy" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestOrderOfDatabases: those that were asked for come first, in the order of their names in --first, then the smallest.
func TestOrderOfDatabases(t *testing.T) {
	t.Parallel()
	plan, err := newPlan(t.TempDir(), recoveryPlan{
		Format: recoveryFormat, Step: stepServe, First: []string{"large", "middle"},
		Report: RecoveryReport{Databases: []RecoveredDatabase{
			{ID: "1", Name: "small", Bytes: 20}, {ID: "2", Name: "smallest", Bytes: 10}, {ID: "3", Name: "middle", Bytes: 300}, {ID: "4", Name: "large", Bytes: 4000},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &secondPhase{store: plan}
	if got := s.order(); !slices.Equal(got, []string{"4", "3", "2", "1"}) {
		t.Errorf("the order is %v", got)
	}
}

// TestReportOfWhatIsLeft: the report says which databases stay in the copy, and the log counts as it does.
func TestReportOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	plan, err := newPlan(t.TempDir(), recoveryPlan{
		Format: recoveryFormat, Step: stepServe, Only: []string{"wiki", "old"},
		Report: RecoveryReport{Databases: []RecoveredDatabase{{ID: "1", Name: "shop"}, {ID: "2", Name: "wiki"}, {ID: "3", Name: "old", Trash: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := openBucketStore(t, dataDir(t), nil)
	defer b.close(t)
	var log bytes.Buffer
	b.core.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := &secondPhase{core: b.core, store: plan}
	s.Rebuilt("2", nil, nil)
	s.tell()
	var left []string
	for _, d := range (&Service{core: b.core, plan: plan}).report().Databases {
		if d.Left {
			left = append(left, d.Name)
		}
	}
	if !slices.Equal(left, []string{"shop"}) {
		t.Errorf("left in the copy: %v", left)
	}
	if text := log.String(); strings.Contains(text, "last_commit") || !strings.Contains(text, "databases=1 ") {
		t.Errorf("the log says\n%s", text)
	}
}

// TestReportOfWhatIsMissing: a recovery without a database does not call itself complete until somebody has dealt with
// that: by a restore of another backup, or by a deletion.
func TestReportOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := openBucketStore(t, dataDir(t), nil)
	defer b.close(t)
	plan, err := newPlan(t.TempDir(), recoveryPlan{
		Format: recoveryFormat, Step: stepServe,
		Report: RecoveryReport{Machine: "old", Databases: []RecoveredDatabase{{ID: "db_1", Organization: b.org, Name: "shop"}, {ID: "db_2", Organization: b.org, Name: "wiki"}, {ID: "db_3", Organization: "org_2", Name: "other"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.core.Meta.Update(func(tx *meta.Tx) error {
		return errors.Join(
			tx.Databases().Insert(model.Database{ID: "db_1", Organization: b.org, Project: "p", Name: "shop"}),
			tx.Databases().Insert(model.Database{ID: "db_2", Organization: b.org, Project: "p", Name: "wiki", Rebuild: true}),
			tx.Databases().Insert(model.Database{ID: "db_3", Organization: "org_2", Project: "q", Name: "other", Rebuild: true}),
		)
	}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b.core.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := &secondPhase{core: b.core, store: plan, fetched: make(chan struct{})}
	s.Rebuilt("db_1", nil, nil)
	s.Rebuilt("db_2", nil, model.Errorf(model.CodeConflict, "its files are damaged"))
	s.Rebuilt("db_3", nil, model.Errorf(model.CodeConflict, "its files are damaged"))
	s.tell()
	if text := log.String(); strings.Contains(text, "the recovery is complete") || !strings.Contains(text, "the recovery is not complete") || !strings.Contains(text, `missing="[wiki other]"`) {
		t.Errorf("the log says\n%s", text)
	}
	if text := plan.get().Report.String(); !strings.Contains(text, "is not complete") || !strings.Contains(text, "The database wiki could not be brought back") {
		t.Errorf("the report says %s", text)
	}
	service := &Service{core: b.core, plan: plan}
	missing := func() []string { return service.report().of(b.org).Missing() }
	if got := missing(); !slices.Equal(got, []string{"wiki"}) {
		t.Errorf("the status misses %v", got)
	}
	for _, dealt := range []struct {
		how string
		do  func(*model.Database)
	}{
		{"restored", func(d *model.Database) { d.Rebuild = false }},
		{"deleted", func(d *model.Database) { d.Rebuild, d.Trash = true, &model.Trash{} }},
	} {
		if err := b.core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Change("db_2", dealt.do) }); err != nil {
			t.Fatal(err)
		}
		if got := missing(); len(got) > 0 {
			t.Errorf("%s, and %v are missing", dealt.how, got)
		}
	}
}

// TestRebuiltBeforeTheEnd: an appliance that dies after the switch to a rebuilt database, and before the plan says so, knows its
// last commit at the next start. One that was deleted meanwhile has none, and nothing of it is fetched.
func TestRebuiltBeforeTheEnd(t *testing.T) {
	t.Parallel()
	b := openBucketStore(t, dataDir(t), nil)
	defer b.close(t)
	plan, err := newPlan(t.TempDir(), recoveryPlan{
		Format: recoveryFormat, Step: stepServe, Report: RecoveryReport{Databases: []RecoveredDatabase{{ID: "db_1"}, {ID: "db_2"}, {ID: "db_3"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.core.Meta.Update(func(tx *meta.Tx) error {
		return errors.Join(
			tx.Databases().Insert(model.Database{ID: "db_1", Organization: b.org, Project: "p", Name: "switched"}),
			tx.Databases().Insert(model.Database{ID: "db_2", Organization: b.org, Project: "p", Name: "waits", Rebuild: true}),
		)
	}); err != nil {
		t.Fatal(err)
	}
	last := time.Now()
	for _, id := range []string{"db_1", "db_2", "db_3"} {
		(&secondPhase{core: b.core, store: plan}).Rebuilding(id, &last)
	}
	dir := b.core.Config.DataDir
	for _, id := range []string{"db_2", "db_3"} {
		if err := (fetchList{Format: fetchFormat}).write(dir, id); err != nil {
			t.Fatal(err)
		}
	}
	s := &secondPhase{core: b.core, store: plan, fetched: make(chan struct{})}
	if err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !isAway(dir, "db_2") || isAway(dir, "db_3") {
		t.Error("the wrong lists of files to fetch were removed")
	}
	for id, want := range map[string]struct{ done, known bool }{"db_1": {true, true}, "db_2": {false, true}, "db_3": {true, false}} {
		if d, _ := plan.database(id); d.Done != want.done || (d.LastCommit != nil) != want.known {
			t.Errorf("%s: %+v", id, d)
		}
	}
}

// TestRecoverBegun: a recovery that ended before its plan was written can be begun again, and a used directory is refused.
func TestRecoverBegun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside := filepath.Join(dir, Directory)
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := refuseUsed(dir, nil); err != nil {
		t.Errorf("with an empty directory: %v", err)
	}
	for _, step := range []struct {
		name    string
		refused bool
	}{{recoveryFile + durable.NewSuffix, false}, {stateFile, true}} {
		if err := os.WriteFile(filepath.Join(inside, step.name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := refuseUsed(dir, nil); (err != nil) != step.refused {
			t.Errorf("with %s: %v", step.name, err)
		}
	}
}

// TestReplayPassesOverWhatWasRemoved: the log may have the end of something that was removed before the checkpoint could collect
// its beginning. That is no gap, and everything after it is recovered. After the checkpoint, a gap is one: in the WAL of a
// database it ends that database, else everything.
func TestReplayPassesOverWhatWasRemoved(t *testing.T) {
	t.Parallel()
	r := directoryRepository(t)
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{Interval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	queue := &frameQueue{wake: w.Wake, known: newKnown()}
	w.Add(queue)
	say := func(bodies ...stream.Body) {
		t.Helper()
		queue.add(bodies...)
		if _, err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	end := func(owner string) stream.Body {
		return stream.WAL{Owner: owner, Generation: 1, Timeline: 1, From: 100, Bytes: []byte("the end of a segment")}
	}
	if _, err := w.Checkpoint(t.Context(), func(context.Context) ([]stream.Entry, error) {
		say(end("db_removed"))
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	small := func(name string) stream.Body {
		return stream.WALFile{Owner: name, Generation: 1, Name: "00000002.history", Content: []byte("1\t0/3000000\treason\n")}
	}
	say(small("db_kept"))
	say(generationOf(t, "db_lost"), stream.WAL{Owner: "db_lost", Generation: 1, Timeline: 1, From: 1 << 20, Bytes: []byte("the beginning of another segment")})
	say(end("db_lost"))
	say(stream.WAL{Owner: "db_lost", Generation: 1, Timeline: 1, From: 2 << 20, Bytes: []byte("a segment after the hole")})
	say(small("db_after_the_hole"))
	say(stream.Journal{Segment: 7, From: 100, Bytes: []byte("the end of a segment")})
	say(small("db_after_the_gap"))
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := firstPhase{o: RecoverOptions{DataDir: t.TempDir(), Progress: func(Progress) {}}, history: h}
	if p.checkpoint, err = h.Find(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if p.restorers, err = newRestorers(r, "", p.o.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := p.replay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.report.Warnings) != 1 || !strings.Contains(p.report.Warnings[0], "journal") {
		t.Errorf("warnings: %q", p.report.Warnings)
	}
	for owner, want := range map[string]bool{"db_removed": false, "db_kept": false, "db_lost": true} {
		if _, lacks := p.restorers.databases.lacking(owner); lacks != want {
			t.Errorf("%s lacks WAL: %v", owner, lacks)
		}
	}
	if names, err := filepath.Glob(filepath.Join(walOf(p.o.DataDir, "db_lost"), "1", "*.partial")); err != nil || len(names) != 1 {
		t.Errorf("of the database that ends at a hole there are the segments %v, %v", names, err)
	}
	for owner, want := range map[string]bool{"db_kept": true, "db_after_the_hole": true, "db_after_the_gap": false} {
		_, err := os.Stat(walOf(p.o.DataDir, owner))
		if err == nil != want {
			t.Errorf("%s: %v", owner, err)
		}
	}
}

// TestReserveGenerations: no rebuild uses the number of a generation that the copy has, whatever of it was restored.
func TestReserveGenerations(t *testing.T) {
	t.Parallel()
	at, _ := preparedDirectory(t)
	c := at.open(t)
	r := c.repository
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Checkpoint(t.Context(), func(context.Context) ([]stream.Entry, error) {
		return []stream.Entry{
			{Owner: "db_1", Kind: KindWAL, Name: "2/000000020000000000000001.zst", Ref: stream.Reference{Epoch: w.Epoch(), ID: 1}},
			{Owner: "db_2", Kind: KindWAL, Name: "2/000000020000000000000001.zst", Ref: stream.Reference{Epoch: w.Epoch(), ID: 2}},
		}, nil
	}); err != nil {
		t.Fatal(err)
	}
	w.Add(&frames{left: []stream.Frame{
		{Time: time.Now(), Body: stream.WAL{Owner: "db_2", Generation: 3, Timeline: 3, From: 100, Bytes: []byte("a new generation")}},
		{Time: time.Now(), Body: stream.WALFile{Owner: "db_3", Generation: 4, Name: "incarnation", Content: []byte("one that begins")}},
	}})
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := meta.Open(filepath.Join(t.TempDir(), "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string]int{"db_1": 2, "db_2": 3, "db_3": 4, "db_4": 1, "db_5": 6}
	if err := db.Update(func(tx *meta.Tx) (err error) {
		for id := range want {
			d := model.Database{ID: id, Organization: "org_1", Project: "p", Name: id, Generation: 1}
			if id == "db_5" {
				d.Begun = 6
			}
			err = errors.Join(err, tx.Databases().Insert(d))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	p := firstPhase{connection: c, history: h, restorers: &restorers{known: newKnown()}, partly: true}
	if err := p.reserveGenerations(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := db.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(d model.Database) error {
			if d.LastGeneration() != want[d.ID] || d.Generation != 1 {
				t.Errorf("the last generation of %s is %d, want %d", d.ID, d.LastGeneration(), want[d.ID])
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
}

// TestReplayFromAStoreThatIsAway: a log object that is missing in an empty store, as of a disk that is not mounted, is not the end of the
// log, and no generation is free for it.
func TestReplayFromAStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &absent{}
		r, _ := storeWithFile(t, store)
		w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Checkpoint(t.Context(), func(context.Context) ([]stream.Entry, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		body := stream.WALFile{Owner: "db_1", Generation: 1, Name: "00000002.history", Content: []byte("1\t0/3000000\treason\n")}
		w.Add(&frames{left: []stream.Frame{{Time: time.Now(), Body: body}}})
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := firstPhase{
			o: RecoverOptions{DataDir: t.TempDir(), Progress: func(Progress) {}}, connection: &connection{store: store, repository: r},
			history: claimEpoch(t, r),
		}
		if p.checkpoint, err = p.history.Find(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if p.restorers, err = newRestorers(r, "", p.o.DataDir); err != nil {
			t.Fatal(err)
		}
		db, err := meta.Open(filepath.Join(t.TempDir(), "holdfast.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		away := func(count int32) {
			store.empty.Store(true)
			for _, left := range []*atomic.Int32{&store.gets, &store.stats, &store.lists} {
				left.Store(count)
			}
		}
		away(1000)
		if err := p.replay(t.Context()); err == nil || !isAboutStore(err) || p.partly {
			t.Errorf("the log of a store that is away: %v, and the end is said to be lost: %t", err, p.partly)
		}
		p.partly = true
		away(1000)
		if err := p.reserveGenerations(t.Context(), db); err == nil || !isAboutStore(err) {
			t.Errorf("the generations of a store that is away: %v", err)
		}
		away(0)
		if err := errors.Join(p.replay(t.Context()), p.reserveGenerations(t.Context(), db)); err != nil || len(p.report.Warnings) > 0 {
			t.Errorf("of a store that is back: %v, %q", err, p.report.Warnings)
		}
	})
}

// generationOf returns the file that begins generation 1 of a database, with segments of 1 MiB.
func generationOf(t *testing.T, owner string) stream.Body {
	t.Helper()
	archive, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := archive.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	w, err := archive.Writer(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Identify(77, 1<<20, 1), w.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := archive.Stored()
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return stream.WALFile{Owner: owner, Generation: 1, Name: files[0].Name, Content: files[0].Content}
}

// TestLostAreDroppedOnce: a later start of a recovery that is not complete drops nothing more.
func TestLostAreDroppedOnce(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	b := openBucketStore(t, dir, nil)
	defer b.close(t)
	if _, err := newPlan(dir, recoveryPlan{Format: recoveryFormat, Step: stepServe, Report: RecoveryReport{Point: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"not copied", "damaged later"} {
		b.put(t, key, strings.Repeat(key, 20_000))
		if err := b.core.Meta.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove((&evictingStore{bucketStore: b}).path(t, key)); err != nil {
			t.Fatal(err)
		}
		plan, err := openPlan(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := &Service{core: b.core, config: core.Offsite{URL: "file:///copy"}, recovery: &secondPhase{core: b.core, store: plan}}
		if _, err := s.ContinueRecovery(t.Context(), b.Service); err != nil {
			t.Fatal(err)
		}
		if n := plan.get().Report.ObjectsDropped; n != 1 {
			t.Errorf("%s: %d were dropped", key, n)
		}
	}
}
