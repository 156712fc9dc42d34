package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/testenv"
)

// evictingStore is a bucket whose large objects may leave the disk for a directory.
type evictingStore struct {
	*bucketStore
	service    *Service
	connection *connection
	writer     *stream.Writer
	part       *objectsPart
	run        *run
}

// openEvicting opens the objects of a data directory and begins to copy them.
func openEvicting(t testing.TB, at Location, dir string, local core.LocalObjects) *evictingStore {
	t.Helper()
	c := at.open(t)
	s := &evictingStore{connection: c}
	s.bucketStore = openBucketStore(t, dir, func(ctx context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
		ref, err := locate(c.marker.Repository, a)
		if err != nil {
			return nil, err
		}
		return c.repository.Open(ctx, ref, from, n)
	})
	s.core.Config.Offsite.URL, s.core.Config.LocalObjects = at.URL, local
	h := claimEpoch(t, c.repository)
	previous, err := h.Find(t.Context(), time.Time{})
	if err != nil && !errors.Is(err, stream.ErrNoPoint) {
		t.Fatal(err)
	}
	known, err := readKnown(t.Context(), c.repository, h, previous)
	if err != nil {
		t.Fatal(err)
	}
	known.repository = c.marker.Repository
	if s.writer, err = stream.NewWriter(t.Context(), h, stream.Options{Interval: 5 * time.Millisecond, Previous: previous}); err != nil {
		t.Fatal(err)
	}
	s.part = newObjectsPart(s.core, &unreadable{})
	if err := s.part.start(s.writer, known); err != nil {
		t.Fatal(err)
	}
	s.service = &Service{core: s.core, objects: s.Service, soon: make(chan struct{}, 1)}
	s.run = &run{connection: c, writer: s.writer, known: known, readBack: true}
	return s
}

func (s *evictingStore) end(t testing.TB) {
	t.Helper()
	endCopy(t, s.writer, s.part)
	s.close(t)
}

// checkpoint makes a checkpoint that has everything written so far.
func (s *evictingStore) checkpoint(t testing.TB) {
	t.Helper()
	began := time.Now()
	if _, err := s.writer.Checkpoint(t.Context(), s.part.entries); err != nil {
		t.Fatal(err)
	}
	s.run.checkpointed.Store(began.Add(checkpointMargin).UnixNano()) // as if the objects were older
}

func (s *evictingStore) evict(t testing.TB) {
	t.Helper()
	if err := s.service.evictOnce(t.Context(), s.run); err != nil {
		t.Fatal(err)
	}
}

// away returns how many objects are in the store only.
func (s *evictingStore) away(t testing.TB) int {
	t.Helper()
	bodies, err := awayBodies(s.core)
	if err != nil {
		t.Fatal(err)
	}
	return len(bodies)
}

// fill uploads large objects and small ones.
func (s *evictingStore) fill(t testing.TB, n int) (want map[string]string) {
	t.Helper()
	want = map[string]string{"small": "small", "below": strings.Repeat("b", 90_000)}
	for i := range n {
		want[fmt.Sprint("large ", i)] = strings.Repeat(fmt.Sprint("x", i, " "), 40_000)
	}
	for key, content := range want {
		s.put(t, key, content)
	}
	return want
}

// TestEvict: objects leave while they take more than they may, only those that a checkpoint has, and everything
// can be read, on this machine, after restarts, and on another one. A prune removes their copies with them only.
func TestEvict(t *testing.T) {
	at, _ := preparedDirectory(t)
	dir := dataDir(t)
	local := core.LocalObjects{Bytes: 1 << 20, Above: 100_000}
	s := openEvicting(t, at, dir, local)
	want := s.fill(t, 20)
	s.run.checkpointed.Store(1)
	s.evict(t)
	if n := s.away(t); n > 0 {
		t.Errorf("%d objects left before a checkpoint had them", n)
	}
	select {
	case <-s.service.soon:
	default:
		t.Error("no checkpoint was asked for")
	}
	s.checkpoint(t)
	s.evict(t)
	left := s.away(t)
	if left == 0 || s.core.Blobs.Local() > local.Bytes {
		t.Fatalf("%d objects left, the rest has %d bytes", left, s.core.Blobs.Local())
	}
	s.mustHave(t, want, "after they left")
	if s.core.Blobs.Local() > local.Bytes {
		t.Errorf("fetched objects take %d bytes", s.core.Blobs.Local())
	}
	if above := s.MayLeave(90_000); above || !s.core.Blobs.Has(blobstore.Ref(s.blob(t, "below"))) {
		t.Error("an object that is too small left")
	}
	s.end(t)
	for range 2 { // the next runs know it
		s = openEvicting(t, at, dir, local)
		s.checkpoint(t)
		s.evict(t)
		s.mustHave(t, want, "after a restart")
		s.end(t)
	}

	// The store has everything for another machine, after a prune of all that is old.
	later := time.Now().Add(100 * 24 * time.Hour)
	plan, err := at.open(t).repository.PlanPrune(t.Context(), later, later)
	if err == nil {
		_, err = at.open(t).repository.Prune(t.Context(), plan)
	}
	if err != nil || len(plan.Objects) == 0 {
		t.Fatal(plan, err)
	}
	s = openEvicting(t, at, dir, local)
	s.mustHave(t, want, "after a prune")
	to := dataDir(t)
	s.copyMetadata(t, to)
	s.checkpoint(t)
	other := restoreObjects(t, at.open(t).repository, to)
	other.mustHave(t, want, "on another machine")
	other.close(t)

	// An object that was deleted goes from the store too.
	for key := range want {
		s.remove(t, key)
	}
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.core.RemoveDiscarded(); err != nil {
		t.Fatal(err)
	}
	s.checkpoint(t)
	if plan, err = at.open(t).repository.PlanPrune(t.Context(), later, later); err != nil || len(plan.Objects) < left {
		t.Errorf("%d objects can be pruned, %v", len(plan.Objects), err)
	}
	s.end(t)
}

// blob returns the reference of an object's bytes.
func (s *evictingStore) blob(t testing.TB, key string) string {
	t.Helper()
	o, err := s.ObjectGet(s.call("object.get"), s.bucket, key)
	if err != nil {
		t.Fatal(err)
	}
	return o.Blob
}

// TestEvictLeastRecentlyUsed: what was read stays.
func TestEvictLeastRecentlyUsed(t *testing.T) {
	at, _ := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 800_000, Above: 100_000})
	want := s.fill(t, 10)
	past := time.Now().Add(-time.Hour)
	for key := range want {
		if path := s.path(t, key); path != "" {
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.mustHave(t, map[string]string{"large 3": want["large 3"], "large 4": want["large 4"]}, "before")
	s.checkpoint(t)
	s.evict(t)
	for key := range want {
		isUsed, isHere := key == "large 3" || key == "large 4", !s.core.Blobs.IsAway(blobstore.Ref(s.blob(t, key)))
		if isUsed && !isHere {
			t.Errorf("%s was read and left", key)
		}
	}
	if s.away(t) == 0 {
		t.Error("none left")
	}
	s.end(t)
}

// path returns the path of an object's file, "" if it is in the journal.
func (s *evictingStore) path(t testing.TB, key string) string {
	t.Helper()
	directory, id, isFile := strings.Cut(s.blob(t, key), "-")
	if !isFile || strings.HasPrefix(directory, "j") {
		return ""
	}
	return filepath.Join(s.core.Config.DataDir, "blobs", "blobs", directory, id)
}

// TestDamagedList: objects that are only in the store can be read again after damage to the list of them, also to all of it,
// once a checkpoint was made.
func TestDamagedList(t *testing.T) {
	at, _ := preparedDirectory(t)
	dir := dataDir(t)
	s := openEvicting(t, at, dir, core.LocalObjects{Bytes: 1, Above: 100_000})
	want := s.fill(t, 5)
	s.checkpoint(t)
	s.evict(t)
	for _, all := range []bool{false, true} {
		if n := s.away(t); n != 5 {
			t.Fatal(n)
		}
		s.end(t)
		lists, err := filepath.Glob(filepath.Join(dir, objects.Directory, "away", "0*"))
		for _, path := range lists {
			text, readErr := os.ReadFile(path)
			if all {
				clear(text)
			} else if len(text) > 80 {
				text[80] ^= 1
			}
			err = errors.Join(err, readErr, os.WriteFile(path, text, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		s = openEvicting(t, at, dir, core.LocalObjects{Bytes: 1, Above: 100_000})
		if n := s.away(t); n == 5 {
			t.Error("nothing is damaged")
		}
		s.checkpoint(t)
		s.mustHave(t, want, "listed again")
		s.evict(t)
	}
	s.end(t)
}

// TestEvictUnused: what nobody reads leaves although there is room.
func TestEvictUnused(t *testing.T) {
	at, _ := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 1 << 40, Above: 100_000, Unused: time.Hour})
	want := s.fill(t, 4)
	s.checkpoint(t)
	s.evict(t)
	if n := s.away(t); n > 0 {
		t.Errorf("%d objects left", n)
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(s.path(t, "large 2"), past, past); err != nil {
		t.Fatal(err)
	}
	s.evict(t)
	if n := s.away(t); n != 1 || !s.core.Blobs.IsAway(blobstore.Ref(s.blob(t, "large 2"))) {
		t.Errorf("%d objects left", n)
	}
	s.mustHave(t, want, "after they left")
	s.end(t)
}

// TestEvictUnusedClockAhead: a clock that leaps ahead makes nothing unused.
func TestEvictUnusedClockAhead(t *testing.T) {
	at, _ := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 1 << 40, Above: 100_000, Unused: time.Hour})
	s.fill(t, 4)
	s.checkpoint(t)
	s.core.Clock = func() time.Time { return time.Now().AddDate(1, 0, 0) }
	s.evict(t)
	if n := s.away(t); n > 0 {
		t.Errorf("%d objects left", n)
	}
	ahead := s.core.Clock
	for right := range 10 { // it leaps in the middle
		var calls atomic.Int64
		s.core.Clock = func() time.Time {
			if calls.Add(1) <= int64(right) {
				return time.Now()
			}
			return ahead()
		}
		s.evict(t)
		if n := s.away(t); n > 0 {
			t.Fatalf("%d objects left once the clock had leapt after %d looks at it", n, right)
		}
	}
	s.core.Clock = ahead
	s.core.Guard.Mu.Lock()
	s.core.Guard.Believed.Time = s.core.WallClock()
	s.core.Guard.Mu.Unlock()
	s.evict(t)
	if n := s.away(t); n != 4 {
		t.Errorf("%d objects left once the clock is believed", n)
	}
	s.end(t)
}

// TestEvictNeedsTheCopy: what the store has lost or damaged stays here and is stored again.
func TestEvictNeedsTheCopy(t *testing.T) {
	at, store := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 1, Above: 100_000})
	want := s.fill(t, 6)
	s.checkpoint(t)
	parts, err := filepath.Glob(filepath.Join(store, "e/*/file/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range parts {
		info, err := os.Stat(path)
		if err != nil || info.Size() < 100_000 {
			continue
		}
		if i%2 == 0 {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, make([]byte, info.Size()), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.evict(t)
	if n := s.away(t); n > 0 {
		t.Errorf("%d objects left without a copy", n)
	}
	s.mustHave(t, want, "without a copy")
	s.checkpoint(t)
	s.evict(t)
	if n := s.away(t); n != 6 {
		t.Errorf("%d objects left once they were copied again", n)
	}
	s.mustHave(t, want, "copied again")
	s.end(t)
}

// TestEvictWithoutTheMarker: a store whose disk is not mounted has lost nothing, so where the copies are is not forgotten.
func TestEvictWithoutTheMarker(t *testing.T) {
	t.Parallel()
	at, store := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 1, Above: 100_000})
	want := s.fill(t, 2)
	s.checkpoint(t)
	s.evict(t)
	s.core.Config.LocalObjects.Bytes = 1 << 30
	s.mustHave(t, want, "fetched")
	s.core.Config.LocalObjects.Bytes = 1
	if n := s.away(t); n != 0 {
		t.Fatal(n)
	}
	s.checkpoint(t)
	files, err := filepath.Glob(filepath.Join(store, "e/*/file/*/*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, filepath.Join(store, "holdfast"))
	for _, path := range files {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.service.evictOnce(t.Context(), s.run); err == nil {
		t.Error("nothing is wrong without the marker")
	}
	for _, path := range files {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	for key := range want {
		if s.path(t, key) == "" || !strings.HasPrefix(key, "large") {
			continue
		}
		if _, err := s.core.Blobs.Listed(blobstore.Ref(s.blob(t, key))); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	s.end(t)
}

// TestFetchDamagedHere: an object that was damaged here while it could leave this disk is fetched whole before it is forgotten
// where its copy is.
func TestFetchDamagedHere(t *testing.T) {
	t.Parallel()
	at, _ := preparedDirectory(t)
	dir := dataDir(t)
	s := openEvicting(t, at, dir, core.LocalObjects{Bytes: 1, Above: 100_000})
	want := s.fill(t, 3)
	s.checkpoint(t)
	s.evict(t)
	s.core.Config.LocalObjects.Bytes = 1 << 30
	s.mustHave(t, want, "fetched")
	path := s.path(t, "large 1")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[1000] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.end(t)
	s = openEvicting(t, at, dir, core.LocalObjects{})
	if n, err := fetchBodies(t.Context(), s.core, s.MayLeave); n != 0 || err != nil {
		t.Errorf("%d are damaged, %v", n, err)
	}
	if s.core.Blobs.EachListed(func(blobstore.Away, bool) error { return errors.New("listed") }) != nil {
		t.Error("it was not forgotten where the copies are")
	}
	s.mustHave(t, want, "fetched again")
	s.end(t)
}

// TestFetchOfWhatIsLost: bytes that the copy has lost are damaged, unless the copy itself is not there, as when its disk is
// not mounted.
func TestFetchOfWhatIsLost(t *testing.T) {
	at, store := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 1, Above: 100_000})
	s.fill(t, 2)
	s.checkpoint(t)
	s.evict(t)
	bodies, err := awayBodies(s.core)
	if err != nil || len(bodies) != 2 {
		t.Fatal(bodies, err)
	}
	service := &Service{core: s.core, config: core.Offsite{URL: at.URL}, location: at}
	defer service.closeReader()
	fetch := func(a blobstore.Away) error {
		body, err := service.fetchBody(t.Context(), a, 0, a.Size)
		if err == nil {
			_, err = io.Copy(io.Discard, body)
			err = errors.Join(err, body.Close())
		}
		return err
	}
	for _, a := range bodies {
		if err := fetch(a); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := filepath.Glob(filepath.Join(store, "e/*/file/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range parts {
		if i%2 == 0 {
			err = errors.Join(err, os.Remove(path))
		} else {
			err = errors.Join(err, os.Truncate(path, 0))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(store, "holdfast")
	for _, mounted := range []bool{true, false, true} {
		if !mounted {
			err = os.Rename(marker, marker+".away")
		}
		for _, a := range bodies {
			if got := fetch(a); got == nil || errors.Is(got, blobstore.ErrDamaged) != mounted {
				t.Errorf("there %v: %v", mounted, got)
			}
		}
		if !mounted {
			err = errors.Join(err, os.Rename(marker+".away", marker))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.end(t)
}

// TestObjectsInTheCopyOfAnother: a machine whose objects are only in the copy of another one, as after an import, is told how to
// get them here, and not that they cannot be read. One without such objects is told to copy elsewhere.
func TestObjectsInTheCopyOfAnother(t *testing.T) {
	at, _ := preparedDirectory(t)
	s := openEvicting(t, at, dataDir(t), core.LocalObjects{Bytes: 1, Above: 100_000})
	s.fill(t, 1)
	s.checkpoint(t)
	imported := &Service{core: s.core, objects: s.Service, config: core.Offsite{URL: at.URL}, location: at}
	for _, away := range []bool{false, true} {
		if away {
			s.evict(t)
		}
		imported.failure = failure{err: imported.taken(t.Context(), s.connection, stream.ErrTaken)}
		st := imported.Status()
		if st.State != model.OffsiteFailing || st.Readable != away || strings.Contains(st.Problem, "start without --objects-local-size") != away {
			t.Errorf("away %v: %s, readable %v: %s", away, st.State, st.Readable, st.Problem)
		}
		if !strings.Contains(st.Problem, "another machine") || !strings.Contains(st.Problem, "prefix of its own") || !errors.Is(st.Cause, stream.ErrTaken) {
			t.Errorf("away %v: %v", away, st.Cause)
		}
	}
	s.end(t)
}

func isOtherCopy(err error) bool {
	_, is := errors.AsType[*objects.OtherCopyError](err)
	return is
}

// TestOtherCopy: bodies that are in one copy only cannot be referred to by another one.
func TestOtherCopy(t *testing.T) {
	at, _ := preparedDirectory(t)
	other, _ := preparedDirectory(t)
	dir := dataDir(t)
	local := core.LocalObjects{Bytes: 1, Above: 100_000}
	s := openEvicting(t, at, dir, local)
	want := s.fill(t, 3)
	s.checkpoint(t)
	s.evict(t)
	s.end(t)
	s = openEvicting(t, other, dir, local)
	_, err := s.writer.Checkpoint(t.Context(), s.part.entries)
	if !isOtherCopy(err) || !strings.Contains(explain(err), "--objects-local-size") {
		t.Errorf("a checkpoint that lacks bodies: %v", err)
	}
	if _, err := s.get("large 1"); !errors.Is(err, blobstore.ErrAway) || !isOtherCopy(err) {
		t.Errorf("read from another copy: %v", err)
	}
	s.part.stop()
	_ = s.writer.Close(cancelled())
	s.close(t)

	// Without a bound they come back, and then any copy will do, also before it is forgotten where they were.
	s = openEvicting(t, at, dir, core.LocalObjects{})
	if n, all, err := fetchAway(t.Context(), s.core, s.MayLeave); n != 0 || !all || err != nil {
		t.Error(n, all, err)
	}
	s.end(t)
	s = openEvicting(t, other, dir, core.LocalObjects{})
	s.checkpoint(t)
	if n, err := fetchBodies(t.Context(), s.core, s.MayLeave); n != 0 || err != nil {
		t.Error(n, err)
	}
	s.end(t)
	s = openEvicting(t, other, dir, local)
	s.checkpoint(t)
	s.mustHave(t, want, "in the other copy")
	s.end(t)
}

// TestFetchOfDeleted: an object that is deleted while bodies are fetched is not damaged, also after a list of what is away was
// set aside.
func TestFetchOfDeleted(t *testing.T) {
	at, _ := preparedDirectory(t)
	dir := dataDir(t)
	s := openEvicting(t, at, dir, core.LocalObjects{Bytes: 1, Above: 100_000})
	want := s.fill(t, 2)
	s.checkpoint(t)
	s.evict(t)
	s.end(t)
	if err := os.WriteFile(filepath.Join(dir, objects.Directory, "away", "damaged-list"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openEvicting(t, at, dir, core.LocalObjects{})
	body, asked := blobstore.Ref(s.blob(t, "large 0")), 0
	n, all, err := fetchAway(t.Context(), s.core, func(int64) bool {
		if asked++; asked == 1 {
			s.remove(t, "large 0")
			delete(want, "large 0")
			testenv.Eventually(t, "the body of the deleted object is gone", func() bool {
				if err := errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded()); err != nil {
					t.Fatal(err)
				}
				_, err := s.core.Blobs.Listed(body)
				return errors.Is(err, blobstore.ErrNotFound)
			})
		}
		return false
	})
	if n != 0 || !all || err != nil || asked != 2 {
		t.Errorf("%d of %d are damaged, all is %v, %v", n, asked, all, err)
	}
	s.mustHave(t, want, "fetched")
	s.end(t)
}

// TestFetchBodiesThatStay: what may not leave this disk is fetched whatever large objects may take, and one for which there is
// no space keeps no other one away.
func TestFetchBodiesThatStay(t *testing.T) {
	at, _ := preparedDirectory(t)
	local := core.LocalObjects{Bytes: 1, Above: 100_000}
	s := openEvicting(t, at, dataDir(t), local)
	want := s.fill(t, 2)
	for i := range 4 {
		want[fmt.Sprint("stays ", i)] = strings.Repeat(fmt.Sprint(i), 90_000+i)
		s.put(t, fmt.Sprint("stays ", i), want[fmt.Sprint("stays ", i)])
	}
	s.checkpoint(t)
	to := dataDir(t)
	s.copyMetadata(t, to)
	s.end(t)

	c := at.open(t)
	restored := &evictingStore{bucketStore: restoreObjects(t, c.repository, to)}
	restored.core.Config.Offsite.URL, restored.core.Config.LocalObjects = at.URL, local
	refused := int64(90_001)
	restored.FetchWith(func(ctx context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
		if a.Size == refused {
			return nil, core.NoSpace(nil, "no space")
		}
		ref, err := locate("", a)
		if err != nil {
			return nil, err
		}
		return c.repository.Open(ctx, ref, from, n)
	})
	if n, err := fetchBodies(t.Context(), restored.core, restored.MayLeave); n != 0 || !isNoSpace(err) {
		t.Errorf("with one that finds no space: %d are damaged, %v", n, err)
	}
	if n := restored.away(t); n != 3 {
		t.Errorf("%d are away, not two large ones and the one", n)
	}
	refused = -1
	if n, err := fetchBodies(t.Context(), restored.core, restored.MayLeave); n != 0 || err != nil {
		t.Errorf("with space: %d are damaged, %v", n, err)
	}
	if n := restored.away(t); n != 2 {
		t.Errorf("%d are away, not two large ones", n)
	}
	restored.mustHave(t, want, "in the end")
	restored.close(t)
}
