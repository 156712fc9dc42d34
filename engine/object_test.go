package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/blobstore"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/insight"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// store is an engine that keeps objects, without PostgreSQL.
type store struct {
	*Engine
	cfg     core.Config
	now     *atomic.Int64 // nanoseconds that the clock is ahead
	org     string
	project string
}

func openObjects(t testing.TB, change ...func(*core.Config)) *store {
	t.Helper()
	now := new(atomic.Int64)
	cfg := core.Config{DataDir: newDataDir(t), MaxObjectBytes: 1 << 30, AuditKeep: 1 << 20, Rates: core.DefaultRates(), Clock: func() time.Time {
		return time.Now().Add(time.Duration(now.Load()))
	}}
	for _, c := range change {
		c(&cfg)
	}
	s := &store{cfg: cfg, now: now}
	s.open(t)
	if _, err := s.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := s.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	s.org = org.ID
	projects, err := s.Access.ProjectList(s.call(model.ActionProjectList), core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	s.project = projects.Items[0].ID
	t.Cleanup(func() { s.close(t) })
	return s
}

func (s *store) open(t testing.TB) {
	t.Helper()
	e, err := Open(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Engine = e
}

func (s *store) close(t testing.TB) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil && !errors.Is(err, meta.ErrClosed) {
		t.Error(err)
	}
}

func (s *store) call(action model.Action) *model.Call {
	return (&appliance{org: s.org}).call(action)
}

func (s *store) bucket(t testing.TB, name string) string {
	t.Helper()
	b, err := s.Objects.BucketCreate(s.call(model.ActionBucketCreate), objects.NewBucket{Project: s.project, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

func (s *store) put(bucket, key, content string) error {
	_, err := s.Objects.ObjectUpload(context.Background(), s.call(model.ActionObjectUpload),
		objects.Upload{Bucket: bucket, Key: key, Body: strings.NewReader(content), Length: int64(len(content)), ContentType: "text/plain"})
	return err
}

func (s *store) mustPut(t testing.TB, bucket, key, content string) {
	t.Helper()
	if err := s.put(bucket, key, content); err != nil {
		t.Fatal(err)
	}
}

func (s *store) delete(bucket, key string) error {
	_, err := s.Objects.ObjectDelete(context.Background(), s.call(model.ActionObjectDelete), bucket, key)
	return err
}

func (s *store) get(bucket, key string) (string, error) {
	d, err := s.Objects.OpenObject(bucket, key)
	if err != nil {
		return "", err
	}
	defer d.Content.Close()
	content, err := io.ReadAll(d.Content)
	return string(content), err
}

// content is that of every object, by key, as lists show them.
func (s *store) content(t testing.TB, bucket string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for page := (core.Page{Limit: core.MaxLimit}); ; {
		list, err := s.Objects.ObjectList(s.call(model.ActionObjectList), bucket, "", page)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			content, err := s.get(bucket, o.Key)
			if err != nil {
				t.Errorf("%q: %v", o.Key, err)
			}
			all[o.Key] = content
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			return all
		}
	}
}

// mustHold compares a bucket, and its counters, with what should be there.
func (s *store) mustHold(t testing.TB, bucket string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, s.content(t, bucket)); diff != "" {
		t.Errorf("bucket (-want +got):\n%.2000s", diff)
	}
	b, err := s.Objects.BucketGet(s.call(model.ActionBucketGet), bucket)
	size := 0
	for _, content := range want {
		size += len(content)
	}
	if err != nil || b.ObjectCount != int64(len(want)) || b.SizeBytes != int64(size) {
		t.Errorf("the bucket counts %d objects of %d bytes, and has %d of %d, %v", b.ObjectCount, b.SizeBytes, len(want), size, err)
	}
	if err := s.Core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		count, bytes, err := tx.RecountBucket(bucket)
		if count != b.ObjectCount || bytes != b.SizeBytes {
			t.Errorf("a walk finds %d objects of %d bytes, counted are %d of %d", count, bytes, b.ObjectCount, b.SizeBytes)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func text(size int) string {
	random := make([]byte, size/2+1)
	rand.Read(random)
	return fmt.Sprintf("%x", random)[:size]
}

// TestReplay loses everything that the metadata learned after a moment, as a
// crash may, and has the journal say it again.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket, dropped := s.bucket(t, "kept"), s.bucket(t, "dropped")
	want := map[string]string{}
	for i := range 10 {
		want[fmt.Sprint("old ", i)] = text(i * 20_000)
		s.mustPut(t, bucket, fmt.Sprint("old ", i), want[fmt.Sprint("old ", i)])
	}
	s.close(t)
	path := filepath.Join(s.cfg.DataDir, core.MetadataFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.open(t)
	for i := range 40 {
		key := fmt.Sprint("new ", i)
		want[key] = text(i * 5_000)
		s.mustPut(t, bucket, key, want[key])
	}
	for i := range 10 { // replaced, deleted, deleted and put again
		key := fmt.Sprint("old ", i)
		if i%2 == 0 {
			want[key] = "replaced"
			s.mustPut(t, bucket, key, "replaced")
			continue
		}
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
		delete(want, key)
		if i%3 == 0 {
			want[key] = "again"
			s.mustPut(t, bucket, key, "again")
		}
	}
	for i := range 3 { // files that are replaced: what goes is unlinked after the replay
		want["large"] = text(100_000 + i)
		s.mustPut(t, bucket, "large", want["large"])
	}
	s.mustPut(t, dropped, "gone", "gone")
	s.mustHold(t, bucket, want)
	entries, err := s.Core.AuditVerify(s.call(model.ActionAuditVerify))
	if err != nil || len(entries.Faults) > 0 {
		t.Fatal(entries, err)
	}
	s.close(t)
	for range 2 { // the second time in the middle of what was replayed once
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		s.open(t)
		s.mustHold(t, bucket, want)
		s.mustHold(t, dropped, map[string]string{"gone": "gone"})
		again, err := s.Core.AuditVerify(s.call(model.ActionAuditVerify))
		if err != nil || again.Entries < entries.Entries-2 || len(again.Faults) > 0 { // the reads' entries of before are gone
			t.Errorf("%d audit entries of %d came back, %v, %v", again.Entries, entries.Entries, again.Faults, err)
		}
		s.close(t)
	}
	s.open(t)
	s.mustHold(t, bucket, want)
}

// TestIfAbsentRace lets many uploads race for one key.
func TestIfAbsentRace(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "race")
	for round := range 20 {
		var won atomic.Int32
		var winner atomic.Value
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				content := fmt.Sprint(round, i)
				_, err := s.Objects.ObjectUpload(t.Context(), s.call(model.ActionObjectUpload),
					objects.Upload{Bucket: bucket, Key: fmt.Sprint(round), Body: strings.NewReader(content), Length: -1, IfAbsent: true})
				switch {
				case err == nil:
					won.Add(1)
					winner.Store(content)
				case model.CodeOf(err) != model.CodeConflict:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := s.get(bucket, fmt.Sprint(round))
		if won.Load() != 1 || got != winner.Load() || err != nil {
			t.Errorf("%d uploads won, %v, %q is there, %v", won.Load(), winner.Load(), got, err)
		}
	}
}

// TestBucketDeleteRace deletes buckets while objects are on their way into
// them: what is acknowledged must not be gone unless somebody forced it.
func TestBucketDeleteRace(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	for round := range 30 {
		bucket := s.bucket(t, fmt.Sprintf("race-%d", round))
		var wg sync.WaitGroup
		var stored atomic.Bool
		wg.Go(func() { stored.Store(s.put(bucket, "k", "x") == nil) })
		var deleted error
		wg.Go(func() { _, deleted = s.Objects.BucketDelete(s.call(model.ActionBucketDelete), bucket, false) })
		wg.Wait()
		if stored.Load() && deleted == nil {
			t.Fatal("an acknowledged object went with its bucket")
		}
		if stored.Load() {
			s.mustHold(t, bucket, map[string]string{"k": "x"})
		}
	}
}

// TestConcurrentChanges changes few keys from many goroutines while others
// read, and compares counters with what is there.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "busy")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 60 {
				key := fmt.Sprint((i + k) % 5)
				switch k % 3 {
				case 0:
					if err := s.delete(bucket, key); err != nil && model.CodeOf(err) != model.CodeNotFound {
						t.Error(err)
					}
				default:
					if err := s.put(bucket, key, text(k*3000)); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.get(bucket, key); err != nil && model.CodeOf(err) != model.CodeNotFound {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.mustHold(t, bucket, s.content(t, bucket))
}

func (s *store) journalSize(t testing.TB) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.cfg.DataDir, "blobs", "journal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// TestCompaction deletes most of what fills a few segments: the space comes
// back, and what is left can be read all the time.
func TestCompaction(t *testing.T) {
	t.Parallel()
	s := openObjects(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "compacted")
	want, body := map[string]string{}, text(64<<10)
	for i := range 2100 { // 64 KiB each: two segments and more
		content := fmt.Sprint(i) + body[:60_000]
		s.mustPut(t, bucket, fmt.Sprint(i), content)
		if i%10 == 0 {
			want[fmt.Sprint(i)] = content
		}
	}
	before := s.journalSize(t)
	trashed := ""
	for i := range 2100 {
		if i%10 != 0 {
			if err := s.delete(bucket, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := s.Objects.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{Limit: 1})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("trash: %v, %v", list, err)
	}
	trashed = list.Items[0].Version
	if _, err := s.Objects.TrashObjectRestore(s.call(model.ActionTrashObjectRestore), trashed); err != nil {
		t.Fatal(err)
	}
	want["2099"] = "2099" + body[:60_000]
	s.now.Add(int64(2 * time.Hour))
	if err := s.Objects.PurgeObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i += 10 {
			select {
			case <-stop:
				return
			default:
			}
			if got, err := s.get(bucket, fmt.Sprint(i%2100)); err != nil || got != want[fmt.Sprint(i%2100)] {
				t.Errorf("during compaction: %d bytes, %v", len(got), err)
			}
		}
	})
	if err := s.Objects.CompactOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(stop)
	wg.Wait()
	if after := s.journalSize(t); after > before*3/5 { // the newest segment stays
		t.Errorf("the journal has %d bytes of %d", after, before)
	}
	s.mustHold(t, bucket, want)
	s.close(t)
	s.open(t)
	s.mustHold(t, bucket, want)
}

// flip changes one byte of content where it lies on the disk.
func (s *store) flip(t testing.TB, content string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(s.cfg.DataDir, "blobs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if i := bytes.Index(data, []byte(content)); err == nil && i >= 0 {
			found = true
			data[i+len(content)-1] ^= 1
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	})
	if err != nil || !found {
		t.Fatalf("flip: found %v, %v", found, err)
	}
}

// damageAdvice returns the recommendations about damaged objects.
func (s *store) damageAdvice() ([]model.Recommendation, error) { return s.advice("damaged_object") }

func (s *store) advice(code string) ([]model.Recommendation, error) {
	facts, err := s.Insight.Facts(s.org, nil, insight.Usage{})
	return slices.DeleteFunc(advice.Account(facts), func(r model.Recommendation) bool { return r.Code != code }), err
}

// TestScrub damages a small and a large object: both are found and named, and
// neither is served.
func TestScrub(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "scrubbed")
	content := map[string]string{"small": text(3000), "large": text(700_000), "good": text(3000), "good large": text(500_000)}
	for key, c := range content {
		s.mustPut(t, bucket, key, c)
	}
	if err := s.Objects.ScrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.damageAdvice(); err != nil || len(found) != 0 {
		t.Fatalf("before any damage: %v, %v", found, err)
	}
	s.flip(t, content["small"])
	s.flip(t, content["large"])
	if err := s.Objects.ScrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := s.damageAdvice()
	if err != nil || len(found) != 2 {
		t.Fatalf("advice %+v, %v", found, err)
	}
	for _, a := range found {
		key := a.Resource.Name
		if key != "small" && key != "large" || a.Severity != model.SeverityCritical || !strings.Contains(a.Message, key) {
			t.Errorf("advice %+v", a)
		}
		if got, err := s.get(bucket, key); !errors.Is(err, blobstore.ErrDamaged) || len(got) == len(content[key]) {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
	}
	s.mustPut(t, bucket, "small", "new")
	if found, _ := s.damageAdvice(); len(found) != 1 {
		t.Errorf("after one was replaced: %+v", found)
	}
	if got, err := s.get(bucket, "good"); got != content["good"] || err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestObjectsExpire(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket, other := s.bucket(t, "expiring"), s.bucket(t, "staying")
	days := 3
	if _, err := s.Objects.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	for i := range objects.ExpireBatch + 5 {
		s.mustPut(t, bucket, fmt.Sprint("old ", i), "x")
	}
	s.mustPut(t, other, "old", "x")
	s.now.Add(int64(2 * 24 * time.Hour))
	believe(s.Engine)
	s.mustPut(t, bucket, "new", "y")
	if err := s.Objects.ExpireObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.content(t, bucket)); n != objects.ExpireBatch+6 {
		t.Errorf("%d are left a day too early", n)
	}
	s.now.Add(int64(25 * time.Hour))
	believe(s.Engine)
	if err := s.Objects.ExpireObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	days = 36_500 // from before there were clocks
	if _, err := s.Objects.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	if err := s.Objects.ExpireObjects(t.Context()); err != nil {
		t.Error(err)
	}
	s.mustHold(t, bucket, map[string]string{"new": "y"})
	s.mustHold(t, other, map[string]string{"old": "x"})
}

// What replaced an object that was about to expire stays.
func TestReplacedBeforeItExpires(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "expiring")
	s.mustPut(t, bucket, "a", "old")
	s.mustPut(t, bucket, "b", "old")
	old, err := s.Objects.OldestObjects(bucket, s.Core.Clock().Add(time.Hour))
	if err != nil || len(old) != 2 {
		t.Fatalf("%v, %v", old, err)
	}
	s.mustPut(t, bucket, "a", "new")
	b, err := s.Objects.BucketGet(s.call(model.ActionBucketGet), bucket)
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Objects.RemoveExpired(b, old); removed != 1 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
	s.mustHold(t, bucket, map[string]string{"a": "new"})
}

// What would expire at once is not brought back: it would be gone, and in no trash.
func TestRestoreOfWhatHasExpired(t *testing.T) {
	t.Parallel()
	s := openObjects(t, func(c *core.Config) { c.ObjectTrashRetention = 72 * time.Hour })
	bucket := s.bucket(t, "expiring")
	expire := func(days int) {
		t.Helper()
		if _, err := s.Objects.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
			t.Fatal(err)
		}
	}
	expire(1)
	s.mustPut(t, bucket, "k", "x")
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	s.now.Add(int64(25 * time.Hour))
	list, err := s.Objects.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	restore := func() error {
		_, err := s.Objects.TrashObjectRestore(s.call(model.ActionTrashObjectRestore), list.Items[0].Version)
		return err
	}
	if err := restore(); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "expire_after_days") {
		t.Errorf("restore: %v", err)
	}
	expire(2)
	if err := errors.Join(restore(), s.Objects.ExpireObjects(t.Context())); err != nil {
		t.Error(err)
	}
	s.mustHold(t, bucket, map[string]string{"k": "x"})
}

func TestObjectTrash(t *testing.T) {
	t.Parallel()
	s := openObjects(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "kept")
	large := text(300_000)
	s.mustPut(t, bucket, "small", "small")
	s.mustPut(t, bucket, "large", large)
	for _, key := range []string{"small", "large"} {
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
		if _, err := s.get(bucket, key); model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("a deleted object: %v", err)
		}
	}
	s.mustHold(t, bucket, map[string]string{})
	s.mustPut(t, bucket, "small", "another")
	list, err := s.Objects.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, o := range list.Items {
		_, err := s.Objects.TrashObjectRestore(s.call(model.ActionTrashObjectRestore), o.Version)
		if (o.Key == "small") != (model.CodeOf(err) == model.CodeConflict) {
			t.Errorf("restore of %s: %v", o.Key, err)
		}
	}
	s.mustHold(t, bucket, map[string]string{"small": "another", "large": large})
	stranger := s.call(model.ActionTrashObjectRestore)
	stranger.Organization = "org_other"
	if _, err := s.Objects.TrashObjectRestore(stranger, list.Items[0].Version); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("another organization's: %v", err)
	}
	s.now.Add(int64(2 * time.Hour))
	if err := s.Objects.PurgeObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Objects.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{}); err != nil || len(list.Items) != 0 {
		t.Errorf("after its time: %+v, %v", list, err)
	}
	s.mustHold(t, bucket, map[string]string{"small": "another", "large": large})
}

// TestTrashPurge removes more than one batch, and nothing before its time.
func TestTrashPurge(t *testing.T) {
	t.Parallel()
	s := openObjects(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "purged")
	s.mustPut(t, bucket, "younger", "uploaded first, deleted last")
	for i := range objects.ExpireBatch + 5 {
		key := fmt.Sprint("old ", i)
		s.mustPut(t, bucket, key, "x")
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
	}
	s.now.Add(int64(59 * time.Minute))
	believe(s.Engine)
	if err := s.delete(bucket, "younger"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wait time.Duration
		left int
	}{{0, objects.ExpireBatch + 6}, {2 * time.Minute, 1}, {time.Hour, 0}} {
		s.now.Add(int64(c.wait))
		believe(s.Engine)
		if err := s.Objects.PurgeObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := 0
		if err := s.Core.Meta.ViewFlushed(func(tx *meta.Tx) error {
			left = tx.TrashedObjects().Count()
			return nil
		}); err != nil || left != c.left {
			t.Errorf("%s later %d are left, want %d, %v", c.wait, left, c.left, err)
		}
	}
}
