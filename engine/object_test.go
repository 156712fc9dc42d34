package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// store is an engine that stores objects, without PostgreSQL.
type store struct {
	*Engine
	cfg     core.Config
	now     *atomic.Int64 // nanoseconds by which the clock is ahead
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
	object, err := s.Objects.ObjectGet(s.call(model.ActionObjectGet), bucket, key)
	if err != nil {
		return "", err
	}
	r, err := s.Core.Blobs.Open(blobstore.Ref(object.Blob))
	if err != nil {
		return "", err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	return string(content), err
}

// content returns every object's content, by key, as lists show it.
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

// mustHold compares a bucket and its counters with the expected content.
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
		objects, err := tx.NextObjects(bucket, "", len(want)+1)
		if len(objects) != len(want) {
			t.Errorf("a walk finds %d objects, want %d", len(objects), len(want))
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
	days = 36_500 // that is before 1970
	if _, err := s.Objects.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	if err := s.Objects.ExpireObjects(t.Context()); err != nil {
		t.Error(err)
	}
	s.mustHold(t, bucket, map[string]string{"new": "y"})
	s.mustHold(t, other, map[string]string{"old": "x"})
}

// TestTrashPurge removes more than one batch, and nothing before its expiry.
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
