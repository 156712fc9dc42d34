package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

func keepRemoved(c *core.Config) { c.ObjectTrashRetention = time.Hour }

// restore brings a bucket back to a moment and returns what that did.
func (s *store) restore(t testing.TB, bucket string, target time.Time) model.BucketRestore {
	t.Helper()
	planned, err := s.BucketRestorePlan(t.Context(), s.call(model.ActionBucketRestore), bucket, target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, target); err != nil {
		t.Fatal(err)
	}
	done := s.awaitRestored(t, bucket)
	if done.Counts != planned.Counts {
		t.Errorf("planned %+v, done %+v", planned.Counts, done.Counts)
	}
	return done
}

func (s *store) awaitRestored(t testing.TB, bucket string) model.BucketRestore {
	t.Helper()
	var r model.BucketRestore
	testenv.Eventually(t, "the restore of the bucket", func() bool {
		history, err := s.BucketHistory(s.call(model.ActionBucketHistory), bucket)
		if err != nil {
			t.Fatal(err)
		}
		r = *history.Restore
		return r.Status != model.BucketRestoreRunning
	})
	if r.Status != model.BucketRestoreCompleted {
		t.Fatalf("%+v", r)
	}
	return r
}

func (s *store) mustContain(t testing.TB, what, bucket string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, s.content(t, bucket)); diff != "" {
		t.Errorf("%s (-want +got):\n%.2000s", what, diff)
	}
}

// TestBucketRestore writes, replaces, deletes and brings back objects at random, and restores the bucket to moments in between,
// also to some before earlier restores.
func TestBucketRestore(t *testing.T) {
	t.Parallel()
	for _, versioning := range []model.Versioning{model.VersioningOff, model.VersioningEnabled, model.VersioningSuspended} {
		t.Run("versioning "+string(versioning), func(t *testing.T) {
			t.Parallel()
			s := openStore(t, keepRemoved)
			bucket := s.bucket(t, "history")
			for _, v := range []model.Versioning{model.VersioningEnabled, versioning} {
				if versioning == model.VersioningOff {
					break
				}
				s.mustPut(t, bucket, "before-"+string(v), "x")
				if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{Versioning: &v}); err != nil {
					t.Fatal(err)
				}
			}
			random := rand.New(rand.NewPCG(1, uint64(len(versioning))))
			type moment struct {
				at   time.Time
				want map[string]string
			}
			var moments []moment
			for n := range 250 {
				s.changeAtRandom(t, random, bucket, n)
				if n%10 == 0 {
					moments = append(moments, moment{s.core.Clock(), s.content(t, bucket)})
				}
				if n%50 != 49 {
					continue
				}
				m := moments[random.IntN(len(moments))]
				s.restore(t, bucket, m.at)
				s.mustContain(t, fmt.Sprintf("moment before change %d", n), bucket, m.want)
				if again := s.restore(t, bucket, m.at); again.Counts.Restored+again.Counts.Removed+again.Counts.Skipped > 0 {
					t.Errorf("the same moment again: %+v", again.Counts)
				}
			}
			s.close(t)
			s.open(t)
			for _, m := range moments {
				s.restore(t, bucket, m.at)
				s.mustContain(t, "after all", bucket, m.want)
			}
		})
	}
}

// changeAtRandom makes one change of a few keys.
func (s *store) changeAtRandom(t *testing.T, random *rand.Rand, bucket string, n int) {
	t.Helper()
	key := fmt.Sprint("k", random.IntN(12))
	size := 20
	if random.IntN(6) == 0 {
		size = 100_000 // a file of its own
	}
	var err error
	switch random.IntN(10) {
	case 0, 1, 2:
		err = s.delete(bucket, key)
	case 3:
		err = s.deleteSomeVersion(random, bucket)
	case 4:
		err = s.untrashSome(random)
	default:
		err = s.put(bucket, key, strings.Repeat(fmt.Sprint(n, " "), size)[:size])
	}
	if code := model.CodeOf(err); err != nil && code != model.CodeNotFound && code != model.CodeConflict {
		t.Fatal(err)
	}
}

// deleteSomeVersion removes a version by its id, which may be a delete marker.
func (s *store) deleteSomeVersion(random *rand.Rand, bucket string) error {
	list, err := s.VersionList(s.call(model.ActionVersionList), bucket, "k", "", "", "", 1000)
	if err != nil || len(list.Versions) == 0 {
		return err
	}
	v := list.Versions[random.IntN(len(list.Versions))]
	_, err = s.ObjectDelete(context.Background(), s.call(model.ActionObjectDelete), Deletion{Bucket: bucket, Key: v.Key, Version: v.VersionID()})
	return err
}

func (s *store) untrashSome(random *rand.Rand) error {
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{Limit: core.MaxLimit})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	_, err = s.TrashObjectRestore(context.Background(), s.call(model.ActionTrashObjectRestore), list.Items[random.IntN(len(list.Items))].Version)
	return err
}

// fill makes many small objects at once.
func (s *store) fill(t testing.TB, bucket string, n int, content string) map[string]string {
	t.Helper()
	want := map[string]string{}
	errs := make(chan error)
	for i := range n {
		key := fmt.Sprintf("many/%06d", i)
		want[key] = content + key
		go func() { errs <- s.put(bucket, key, content+key) }()
		if i%256 == 255 || i == n-1 {
			for range i%256 + 1 {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return want
}

// TestBucketRestoreIsResumed stops the appliance in the middle of a restore of several pages, while clients write.
func TestBucketRestoreIsResumed(t *testing.T) {
	t.Parallel()
	for _, versioning := range []model.Versioning{model.VersioningOff, model.VersioningEnabled} {
		t.Run("versioning "+string(versioning), func(t *testing.T) {
			t.Parallel()
			s := openStore(t, keepRemoved)
			bucket := s.bucket(t, "large")
			if versioning != model.VersioningOff {
				if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{Versioning: new(versioning)}); err != nil {
					t.Fatal(err)
				}
			}
			want := s.fill(t, bucket, 1600, "good ")
			target := s.core.Clock()
			s.fill(t, bucket, 1600, "bad ")
			if _, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, target); err != nil {
				t.Fatal(err)
			}
			if _, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, target); model.CodeOf(err) != model.CodeConflict {
				t.Errorf("a second restore: %v", err)
			}
			s.mustPut(t, bucket, "many/001599", "of a client")
			want["many/001599"] = "of a client"
			stops := 0
			for rows := int64(-1); ; stops++ {
				testenv.Catch(t, time.Minute, "a step", func() bool {
					h, err := s.BucketHistory(s.call(model.ActionBucketHistory), bucket)
					if err != nil {
						t.Fatal(err)
					}
					moved := h.Restore.RowsDone > rows || h.Restore.Status != model.BucketRestoreRunning
					rows = h.Restore.RowsDone
					return moved
				})
				s.close(t)
				s.open(t)
				if err := s.ResumeRestores(); err != nil {
					t.Fatal(err)
				}
				if running, err := meta.Value(s.core.Meta.View, runningRestores); err != nil || len(running) == 0 {
					break
				}
			}
			r := s.awaitRestored(t, bucket)
			t.Logf("stopped %d times: %+v", stops, r)
			s.mustContain(t, "after the stops", bucket, want)
			if r.RowsDone < r.Rows || r.Counts.Restored != 1599 {
				t.Errorf("%d of %d rows, %+v", r.RowsDone, r.Rows, r.Counts)
			}
		})
	}
}

// TestBucketRestoreIsHonest: a moment of which something is gone for good is refused, and nothing changes.
func TestBucketRestoreIsHonest(t *testing.T) {
	t.Parallel()
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "gone")
	s.mustPut(t, bucket, "k", "one")
	first := s.core.Clock()
	s.mustPut(t, bucket, "k", "two")
	second := s.core.Clock()
	refused := func(what string, target time.Time, says string) {
		t.Helper()
		_, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, target)
		if _, planErr := s.BucketRestorePlan(t.Context(), s.call(model.ActionBucketRestore), bucket, target); err == nil || planErr == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, planned: %v", what, err, planErr)
		}
	}
	refused("the future", time.Now().Add(time.Minute), "future")
	refused("before the bucket", first.Add(-time.Hour), "was made")
	if removed, err := s.EmptyObjects(s.call(model.ActionTrashEmpty)); err != nil || removed != 1 {
		t.Fatal(removed, err)
	}
	refused("what was purged", first, "removed for good")
	s.restore(t, bucket, second)
	s.mustHold(t, bucket, map[string]string{"k": "two"})

	s.mustPut(t, bucket, "k", "three")
	s.mustHold(t, bucket, map[string]string{"k": "three"})
	s.now.Add(int64(2 * time.Hour))
	s.believe()
	if err := s.PurgeObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused("beyond the retention", second, "removed for good")
	s.core.Config.ObjectTrashRetention = 0
	refused("without retention", s.core.Clock(), "--object-trash-retention")
}

// TestHistoryEnds: without a trash, what is replaced ends the history; a longer expiry does too, as what expired is gone.
func TestHistoryEnds(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "ends")
	since := func() time.Time {
		b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
		if err != nil {
			t.Fatal(err)
		}
		return b.HistorySince
	}
	made := since()
	s.mustPut(t, bucket, "a", "1")
	if !since().Equal(made) {
		t.Error("an upload ended the history")
	}
	for what, change := range map[string]func() error{
		"a replacement": func() error { return s.put(bucket, "a", "2") },
		"a deletion":    func() error { return errors.Join(s.put(bucket, "b", "1"), s.delete(bucket, "b")) },
		"a longer expiry": func() error {
			for _, days := range []int{1, 2} {
				if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{ExpireAfterDays: &days}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		before := s.core.Clock()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if since().Before(before) {
			t.Errorf("%s did not end the history", what)
		}
	}
}

// TestRestoreKeepsWhatItNeeds: while a restore runs, nothing that it needs is purged.
func TestRestoreKeepsWhatItNeeds(t *testing.T) {
	t.Parallel()
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "needed")
	s.mustPut(t, bucket, "k", "one")
	target := s.core.Clock()
	s.mustPut(t, bucket, "k", "two")
	if err := s.core.Meta.Update(func(tx *meta.Tx) error {
		return beginRestore(tx, model.BucketRestore{Bucket: bucket, Organization: s.org, Target: target, Status: model.BucketRestoreRunning, StartedAt: s.core.Clock()})
	}); err != nil {
		t.Fatal(err)
	}
	s.now.Add(int64(2 * time.Hour))
	s.believe()
	if err := errors.Join(s.PurgeObjects(t.Context()), s.ResumeRestores()); err != nil {
		t.Fatal(err)
	}
	s.awaitRestored(t, bucket)
	s.mustHold(t, bucket, map[string]string{"k": "one"})
}

// TestRestoreDuringAPurge: a restore that is accepted while the trash is being purged finds all that it needs.
func TestRestoreDuringAPurge(t *testing.T) {
	t.Parallel()
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "purged")
	const all, needed = 6 * ExpireBatch, 400
	want := s.fill(t, bucket, all, "")
	var target time.Time
	for i := range all {
		if i == all-needed {
			target = s.core.Clock()
		}
		s.now.Add(int64(time.Second))
		key := fmt.Sprintf("many/%06d", i)
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
		if i < all-needed {
			delete(want, key)
		}
	}
	s.now.Add(int64(2 * time.Hour))
	s.believe()
	purged := make(chan error)
	go func() { purged <- s.PurgeObjects(t.Context()) }()
	testenv.Catch(t, time.Minute, "the first batch", func() bool { return s.trashCount(t) < all })
	if _, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, target); err != nil {
		t.Fatal(err)
	}
	if err := <-purged; err != nil {
		t.Error(err)
	}
	s.awaitRestored(t, bucket)
	s.mustHold(t, bucket, want)
}

// TestPurgeDuringARestore: a restore from which somebody takes what it needs says so.
func TestPurgeDuringARestore(t *testing.T) {
	t.Parallel()
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "purged")
	s.mustPut(t, bucket, "k", "one")
	target := s.core.Clock()
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	r := model.BucketRestore{Bucket: bucket, Organization: s.org, Target: target, Status: model.BucketRestoreRunning, StartedAt: s.core.Clock()}
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return beginRestore(tx, r) }); err != nil {
		t.Fatal(err)
	}
	plans, _, err := s.planKeys(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.EmptyObjects(s.call(model.ActionTrashEmpty)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.restorePlanned(r, plans); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("the restore: %v", err)
	}
}

// TestDeletedAgainDuringAPurge: what came back from the trash and was deleted again stays for its whole time.
func TestDeletedAgainDuringAPurge(t *testing.T) {
	t.Parallel()
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "purged")
	s.mustPut(t, bucket, "k", "one")
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	s.now.Add(int64(2 * time.Hour))
	s.believe()
	_, listed := s.trashed(t)
	if _, err := s.TrashObjectRestore(context.Background(), s.call(model.ActionTrashObjectRestore), listed[0].Version); err != nil {
		t.Fatal(err)
	}
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	if err := s.purgeExpired(listed, s.core.Clock().Add(-s.core.ObjectTrashRetention())); err != nil {
		t.Fatal(err)
	}
	if n := s.trashCount(t); n != 1 {
		t.Errorf("%d objects are in the trash", n)
	}
}

// trashCount returns how many versions are in the trash.
func (s *store) trashCount(t testing.TB) int {
	t.Helper()
	n, err := meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) (int, error) { return tx.TrashedObjects().Count(), nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPlanOfLargeBucketIsBounded makes a plan whose time is over after the first keys.
func TestPlanOfLargeBucketIsBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "large")
	target := s.core.Clock()
	s.fill(t, bucket, restorePage+1, "new ")
	b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		until   time.Time
		removed int64
		partial bool
	}{{time.Now().Add(-time.Second), restorePage, true}, {time.Now().Add(time.Hour), restorePage + 1, false}} {
		r, err := s.planRestore(t.Context(), b, target, c.until)
		if err != nil || r.Counts.Removed != c.removed || r.Partial != c.partial {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestBucketRestoreOfManyObjects measures the memory of a restore of many objects: less than a record for each.
func TestBucketRestoreOfManyObjects(t *testing.T) {
	testenv.Long(t)
	many := 20_000
	if testenv.IsAll() {
		many = 100_000
	}
	s := openStore(t, keepRemoved)
	bucket := s.bucket(t, "many")
	want := s.fill(t, bucket, many, "good ")
	target := s.core.Clock()
	s.fill(t, bucket, many, "bad ")
	before := heap()
	began := time.Now()
	var r model.BucketRestore
	if _, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, target); err != nil {
		t.Fatal(err)
	}
	highest := before
	testenv.Eventually(t, "the restore", func() bool {
		highest = max(highest, heap())
		h, err := s.BucketHistory(s.call(model.ActionBucketHistory), bucket)
		if err != nil {
			t.Fatal(err)
		}
		r = *h.Restore
		return r.Status != model.BucketRestoreRunning
	})
	t.Logf("%d objects in %s, with %d MB more on the heap", r.Counts.Restored, time.Since(began).Round(time.Millisecond), (highest-before)>>20)
	if r.Counts.Restored != int64(many) || highest-before > 600*many {
		t.Errorf("%+v, %d MB more", r, (highest-before)>>20)
	}
	for key := range maps.Keys(want) {
		if got, err := s.get(bucket, key); err != nil || got != want[key] {
			t.Fatalf("%s: %q, %v", key, got, err)
		}
	}
}

// heap returns the bytes of reachable objects.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestRestoreAndClockSetBack: what clients write while a restore runs stays, and the restore goes on, also when the clock is
// set back meanwhile.
func TestRestoreAndClockSetBack(t *testing.T) {
	t.Parallel()
	for name, versioning := range map[string]bool{"plain": false, "versioned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, keepRemoved)
			bucket := s.bucket(t, "files")
			if versioning {
				if err := s.setVersioning(bucket, model.VersioningEnabled); err != nil {
					t.Fatal(err)
				}
			}
			for _, key := range []string{"written", "deleted", "left"} {
				s.mustPut(t, bucket, key, "old")
			}
			s.now.Add(int64(time.Minute))
			target := s.core.Clock()
			s.now.Add(int64(time.Second))
			for _, key := range []string{"written", "deleted", "left"} {
				s.mustPut(t, bucket, key, "new")
			}
			b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
			if err != nil {
				t.Fatal(err)
			}
			err = s.core.Meta.Update(func(tx *meta.Tx) error { return beginRestore(tx, s.newRestore(b, target)) })
			if err != nil {
				t.Fatal(err)
			}
			s.now.Add(-int64(2 * time.Second))
			s.mustPut(t, bucket, "written", "after the start")
			if err := s.delete(bucket, "deleted"); err != nil {
				t.Fatal(err)
			}
			s.runRestore(t.Context(), bucket)
			s.awaitRestored(t, bucket)
			s.mustContain(t, "the restore", bucket, map[string]string{"written": "after the start", "left": "old"})
		})
	}
}
