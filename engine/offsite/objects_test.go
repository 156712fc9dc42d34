package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// bucketStore is the objects service on a data directory of its own, with one bucket.
type bucketStore struct {
	*objects.Service
	core   *core.Core
	org    string
	bucket string
}

// openBucketStore opens the objects of a data directory, and makes the bucket in an empty one.
func openBucketStore(t testing.TB, dir string, fetch objects.Fetch) *bucketStore {
	t.Helper()
	db, err := meta.Open(filepath.Join(dir, core.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	c, err := core.New(core.Config{
		DataDir: dir, MaxObjectBytes: 1 << 30, AuditKeep: 1 << 20, Rates: core.DefaultRates(), Clock: time.Now,
		Log: slog.New(slog.DiscardHandler),
	}, db)
	if err != nil {
		t.Fatal(err)
	}
	s := &bucketStore{Service: objects.New(c), core: c}
	s.FetchWith(fetch)
	if err := errors.Join(s.Open(), c.Begin()); err != nil {
		t.Fatal(err)
	}
	people := access.New(c)
	if _, err := people.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := people.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	s.org = org.ID
	known := func(tx *meta.Tx) error { return tx.Keys().Insert(*s.call(model.ActionKeyCreate).Key) }
	if err := db.Update(known); err != nil && !errors.Is(err, meta.ErrExists) {
		t.Fatal(err)
	}
	projects, err := people.ProjectList(s.call(model.ActionProjectList), core.Filter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := s.BucketList(s.call(model.ActionBucketList), objects.BucketFilter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if len(buckets.Items) > 0 {
		s.bucket = buckets.Items[0].ID
		return s
	}
	b, err := s.BucketCreate(s.call(model.ActionBucketCreate), objects.NewBucket{Project: projects.Items[0].ID, Name: "photos", Public: true})
	if err != nil {
		t.Fatal(err)
	}
	s.bucket = b.ID
	return s
}

func (s *bucketStore) close(t testing.TB) {
	t.Helper()
	s.core.Stop()
	s.core.Work.Wait()
	s.core.Audits.Close()
	if err := errors.Join(s.core.Blobs.Close(), s.core.Meta.Close()); err != nil {
		t.Error(err)
	}
}

func (s *bucketStore) call(action model.Action) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: action}, Organization: s.org,
		Actor: model.Actor{Type: model.ActorKey, ID: "key_test", Name: "test"},
		Key:   &model.Key{ID: "key_test", Hash: []byte("key_test"), Scopes: model.Scopes(), AllowDangerous: true},
	}
}

func (s *bucketStore) put(t testing.TB, key, content string) {
	t.Helper()
	if _, err := s.ObjectUpload(context.Background(), s.call(model.ActionObjectUpload), objects.Upload{
		Bucket: s.bucket, Key: key, Body: strings.NewReader(content), Length: int64(len(content)), ContentType: "text/plain",
	}); err != nil {
		t.Error(err)
	}
}

func (s *bucketStore) remove(t testing.TB, key string) {
	t.Helper()
	if _, err := s.ObjectDelete(context.Background(), s.call(model.ActionObjectDelete), objects.Deletion{Bucket: s.bucket, Key: key}); err != nil {
		t.Error(err)
	}
}

func (s *bucketStore) get(key string) (string, error) {
	d, err := s.ObjectDownload(context.Background(), &model.Call{}, s.bucket, key, "")
	if err != nil {
		return "", err
	}
	defer d.Content.Close()
	b, err := io.ReadAll(d.Content)
	return string(b), err
}

// metadataAt is a copy of the metadata that are as old as a moment of the log.
func (s *bucketStore) copyMetadata(t testing.TB, dir string) {
	t.Helper()
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteStream(filepath.Join(dir, core.MetadataFile), 0o600, s.core.Meta.Snapshot); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(s.core.Config.DataDir, core.KeyFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, core.KeyFile), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// beginCopy begins a run of the objects part.
func beginCopy(t testing.TB, r *stream.Repository, s *bucketStore) (*stream.Writer, *objectsPart) {
	t.Helper()
	h := claimEpoch(t, r)
	c, err := h.Find(t.Context(), time.Time{})
	if err != nil && !errors.Is(err, stream.ErrNoPoint) {
		t.Fatal(err)
	}
	k, err := readKnown(t.Context(), r, h, c)
	if err != nil {
		t.Fatal(err)
	}
	w, err := stream.NewWriter(t.Context(), h, stream.Options{Interval: 5 * time.Millisecond, Previous: c})
	if err != nil {
		t.Fatal(err)
	}
	p := newObjectsPart(s.core, &unreadable{})
	if err := p.start(w, k); err != nil {
		t.Fatal(err)
	}
	return w, p
}

func endCopy(t testing.TB, w *stream.Writer, p *objectsPart) {
	t.Helper()
	err := w.Close(t.Context())
	p.stop()
	if err != nil && !errors.Is(err, stream.ErrClosed) {
		t.Error(err)
	}
}

// restoreObjects restores the blob store of a copy, and opens it with the metadata that are in dir.
func restoreObjects(t testing.TB, r *stream.Repository, dir string) *bucketStore {
	t.Helper()
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.Find(t.Context(), time.Time{})
	if err != nil && !errors.Is(err, stream.ErrNoPoint) {
		t.Fatal(err)
	}
	restorer, err := newObjectsRestorer(r, "", dir)
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		for e, err := range r.Catalog(t.Context(), c) {
			if err == nil {
				err = restorer.entry(t.Context(), e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for f, err := range h.Frames(t.Context(), c, time.Time{}) {
		if err == nil {
			err = restorer.frame(t.Context(), f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := restorer.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return openBucketStore(t, dir, func(ctx context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
		ref, err := locate("", a)
		if err != nil {
			return nil, err
		}
		return r.Open(ctx, ref, from, n)
	})
}

func dataDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mustHave compares all objects with a model.
func (s *bucketStore) mustHave(t testing.TB, want map[string]string, when string) {
	t.Helper()
	for key, content := range want {
		if got, err := s.get(key); err != nil || got != content {
			t.Errorf("%s: %s has %d bytes, not %d, %v", when, key, len(got), len(content), err)
		}
	}
}

// TestObjects copies objects over several runs, with and without checkpoints, while they are written, replaced, deleted and
// compacted, and restores them after each.
func TestObjects(t *testing.T) {
	r := directoryRepository(t)
	dir := dataDir(t)
	s := openBucketStore(t, dir, nil)
	want := map[string]string{}
	change := func(round int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for worker := range 4 {
			wg.Go(func() {
				for n := range 20 {
					key := fmt.Sprintf("%d/%d", worker, (n+round)%13)
					content := strings.Repeat(fmt.Sprint(round, " ", worker, " ", n, "."), 1+n*n*40)
					s.put(t, key, content)
					if n%5 == 4 {
						s.remove(t, key)
					}
					mu.Lock()
					want[key] = content
					if n%5 == 4 {
						delete(want, key)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	change(0) // before there is a copy
	for round := 1; round < 6; round++ {
		w, p := beginCopy(t, r, s)
		change(round)
		if round != 3 { // a run without a checkpoint
			if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
				t.Fatal(err)
			}
		}
		change(round + 100)
		if _, err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		to := dataDir(t)
		s.copyMetadata(t, to)
		restored := restoreObjects(t, r, to)
		restored.mustHave(t, want, fmt.Sprint("round ", round))
		restored.close(t)
		if round%2 == 0 {
			endCopy(t, w, p)
		} else { // as a crash does
			p.stop()
			_ = w.Close(cancelled())
		}
		s.close(t)
		s = openBucketStore(t, dir, nil)
	}
	s.close(t)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestObjectsStoredOnce: what did not change is not stored again, by a later checkpoint, run or machine.
func TestObjectsStoredOnce(t *testing.T) {
	r := directoryRepository(t)
	dir := dataDir(t)
	s := openBucketStore(t, dir, nil)
	want := map[string]string{}
	for n := range 20 {
		want[fmt.Sprint("large ", n)] = strings.Repeat(fmt.Sprint("x", n), 50_000+n)
		want[fmt.Sprint("small ", n)] = strings.Repeat(fmt.Sprint("y", n), 10_000+n)
	}
	for key, content := range want {
		s.put(t, key, content)
	}
	for round := range 4 {
		w, p := beginCopy(t, r, s)
		for range 2 {
			if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
				t.Fatal(err)
			}
		}
		counts := w.Status().Counts
		if round == 0 && counts.Files < 21 || round > 1 && counts.FileBytes > 64<<10 {
			t.Errorf("run %d stored %d files, %d bytes", round, counts.Files, counts.FileBytes)
		}
		endCopy(t, w, p)
		to := dataDir(t)
		s.copyMetadata(t, to)
		s.close(t)
		s = restoreObjects(t, r, to) // the next run is of a machine on which the bodies are away
		if round == 3 {
			if n, err := fetchBodies(t.Context(), s.core, s.MayLeave); n != 0 || err != nil {
				t.Errorf("%d are damaged, %v", n, err)
			}
			if s.core.Blobs.EachListed(func(blobstore.Away, bool) error { return errors.New("away") }) != nil {
				t.Error("something is still away")
			}
		}
	}
	s.mustHave(t, want, "after four machines")
	s.close(t)
}

// TestObjectReplacedAllTheTime: the body of an object that is replaced before it was copied is in the copy all the same, so
// that the object exists at every moment of the log.
func TestObjectReplacedAllTheTime(t *testing.T) {
	r := directoryRepository(t)
	s := openBucketStore(t, dataDir(t), nil)
	w, p := beginCopy(t, r, s)
	for n := range 30 {
		s.put(t, "key", strings.Repeat(fmt.Sprint(n, " "), 40_000))
		if err := errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded()); err != nil {
			t.Fatal(err)
		}
	}
	endCopy(t, w, p)
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, dropped := map[string]bool{}, map[string]bool{}
	for f, err := range h.Frames(t.Context(), nil, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := f.Body.(type) {
		case stream.File:
			stored[b.Name] = true
		case stream.FileDrop:
			if !stored[b.Name] {
				t.Error("a body is dropped that was not stored")
			}
			dropped[b.Name] = true
		}
	}
	if len(stored) != 30 || len(dropped) != 29 {
		t.Errorf("%d bodies are stored, %d dropped", len(stored), len(dropped))
	}
	s.close(t)
}

// TestPieces: pieces that are complete stay as they are while a segment grows.
func TestPieces(t *testing.T) {
	s := blobstore.Segment{Number: 7, Mark: "0123456789abcdef"}
	var sizes [][]int64
	for _, size := range []int64{46, tailPiece, tailPiece + 5, segmentPiece - 1, segmentPiece + 2*tailPiece + 3} {
		for _, s.Complete = range []bool{false, true} {
			s.Size = size
			var pieces []int64
			for from := int64(0); from < size; {
				n := nextPiece(s, from)
				if p, at, err := parsePiece(pieceOf(s).name(from)); err != nil || p != pieceOf(s) || at != from {
					t.Errorf("%v %d, %v", p, at, err)
				}
				pieces, from = append(pieces, n), from+n
			}
			sizes = append(sizes, pieces)
		}
	}
	whole := slices.Repeat([]int64{tailPiece}, 15)
	want := [][]int64{
		{46},
		{46},
		{tailPiece},
		{tailPiece},
		{tailPiece, 5},
		{tailPiece + 5},
		append(whole, tailPiece-1),
		{segmentPiece - 1},
		{segmentPiece, tailPiece, tailPiece, 3},
		{segmentPiece, 2*tailPiece + 3},
	}
	if fmt.Sprint(sizes) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", sizes, want)
	}
	for _, name := range []string{"", "1-2-3", "00000007-x-00000001-", "00000007-x-0000001g"} {
		if _, _, err := parsePiece(name); err == nil {
			t.Errorf("%q is a piece", name)
		}
	}
}

// inLog reports whether the log has a record of the journal with a text.
func inLog(t testing.TB, r *stream.Repository, text string) bool {
	t.Helper()
	h, err := r.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range h.Frames(t.Context(), nil, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := f.Body.(stream.Journal); ok && bytes.Contains(j.Bytes, []byte(text)) {
			return true
		}
	}
	return false
}

// TestObjectReplacedBeforeItWasCopied: where the copy ends before the bytes of a new version are in it, a recovery brings the
// version before it back.
func TestObjectReplacedBeforeItWasCopied(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]string{"large": strings.Repeat("old", 50_000), "small": "old"} {
		t.Run(name, func(t *testing.T) { testReplacedBeforeItWasCopied(t, old) })
	}
}

// TestCheckpointHasWhatIsRemovedMeanwhile: a body that is replaced while a checkpoint is made is in it, because the copy may end before the
// bytes of what replaced it.
func TestCheckpointHasWhatIsRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	s := openBucketStore(t, dataDir(t), nil)
	w, p := beginCopy(t, directoryRepository(t), s)
	s.put(t, "key", strings.Repeat("old", 50_000))
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := p.bodiesHere(t.Context())
	if err != nil || len(before.refs) != 1 || len(before.had) != 1 {
		t.Fatalf("the copy has %v, %v", before, err)
	}
	s.put(t, "key", strings.Repeat("new", 50_000))
	if err := errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded()); err != nil {
		t.Fatal(err)
	}
	old := before.refs[0]
	for p.isCopied(old) {
		time.Sleep(time.Millisecond)
	}
	entries, err := p.allBodies(t.Context(), before)
	if err != nil || len(entries) != 1 || entries[0].Name != string(old) {
		t.Errorf("a checkpoint that was begun before has %v, %v", entries, err)
	}
	now, err := p.bodiesHere(t.Context())
	if err == nil {
		entries, err = p.allBodies(t.Context(), now)
	}
	if err != nil || len(entries) != 1 || entries[0].Name == string(old) {
		t.Errorf("the next has %v, %v", entries, err)
	}
	p.stop()
	_ = w.Close(cancelled())
	s.close(t)
}

func testReplacedBeforeItWasCopied(t *testing.T, old string) {
	r := directoryRepository(t)
	s := openBucketStore(t, dataDir(t), nil)
	w, p := beginCopy(t, r, s)
	s.CopyWith(p.isCopied)
	s.put(t, "key", old)
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.cancel() // from now on no body is stored
	p.tasks.Wait()
	s.put(t, "key", strings.Repeat("new", 50_000))
	s.put(t, "small", "small")
	if err := errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded()); err != nil {
		t.Fatal(err)
	}
	for !inLog(t, r, `"key":"small"`) {
		time.Sleep(time.Millisecond)
	}
	to := dataDir(t)
	s.copyMetadata(t, to)
	p.stop()
	_ = w.Close(cancelled())
	s.close(t)
	restored := restoreObjects(t, r, to)
	if n, err := restored.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != 1 || err != nil {
		t.Errorf("%d were dropped, %v", n, err)
	}
	restored.mustHave(t, map[string]string{"key": old, "small": "small"}, "after a cut")
	if n, err := fetchBodies(t.Context(), restored.core, restored.MayLeave); n != 0 || err != nil {
		t.Errorf("%d are damaged, %v", n, err)
	}
	restored.close(t)
}
