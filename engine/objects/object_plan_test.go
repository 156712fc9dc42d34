package objects

import (
	"context"
	"io"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// smallPlan gives the organization a plan of that many objects and, unless it is 0, bytes.
func (s *store) smallPlan(t *testing.T, objects, bytes int64) {
	t.Helper()
	limits := map[model.Metric]int64{model.MetricObjects: objects}
	if bytes > 0 {
		limits[model.MetricStorageBytes] = bytes
	}
	s.core.Config.Plans = map[string]model.Plan{"small": {Name: "small", Limits: limits}}
	if err := s.core.Meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Organizations().Update(s.org, func(o *model.Organization) error { o.Plan = "small"; return nil })
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestBodiesUnderWayHoldNobodyUp: whether a plan has room does not depend on when a part that is being sent ends.
func TestBodiesUnderWayHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.mustPut(t, bucket, "k", "x")
	s.smallPlan(t, 1, 1000)
	m := startMultipart(t, s, bucket)
	body, sent := io.Pipe()
	part := make(chan error)
	go func() { part <- m.put(1, body, 2) }()
	if _, err := sent.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.delete(bucket, "k"); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("a delete marker beyond the plan: %v", err)
	}
	if took := time.Since(began); took > reservedWait/2 {
		t.Errorf("it is refused after %s", took)
	}
	if _, err := sent.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	_ = sent.Close() // it never fails
	if err := <-part; err != nil {
		t.Error(err)
	}
}

// TestPlansWaitWithoutLocks: what waits because an organization's plan seems to be exhausted holds no lock, which others
// share, and ends with its request.
func TestPlansWaitWithoutLocks(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ctx context.Context, s *store, bucket, trashed string) error{
		"deletion": func(ctx context.Context, s *store, bucket, _ string) error {
			_, err := s.ObjectDelete(ctx, s.call(model.ActionObjectDelete), Deletion{Bucket: bucket, Key: "k"})
			return err
		},
		"restore": func(ctx context.Context, s *store, _, trashed string) error {
			_, err := s.TrashObjectRestore(ctx, s.call(model.ActionTrashObjectRestore), trashed)
			return err
		},
		"upload": func(ctx context.Context, s *store, bucket, _ string) error {
			w, err := s.core.Blobs.Create(ctx)
			if err != nil {
				return err
			}
			defer w.Abort()
			_, err = s.publishObject(ctx, s.call(model.ActionObjectUpload), Upload{Bucket: bucket, Key: "new"}, w)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, keepRemoved)
			bucket, other := s.versioned(t, "files"), s.bucket(t, "other")
			s.mustPut(t, other, "gone", "x")
			if err := s.delete(other, "gone"); err != nil {
				t.Fatal(err)
			}
			list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{})
			if err != nil || len(list.Items) != 1 {
				t.Fatal(list, err)
			}
			s.mustPut(t, bucket, "k", "x")
			s.smallPlan(t, 2, 0)
			committing := s.reserved.of(s.org).hold(model.Totals{Objects: 1}, true) // it lasts
			defer committing()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			for range cap(ended) {
				go func() { ended <- change(ctx, s, bucket, list.Items[0].Version) }()
			}
			testenv.Eventually(t, "the first to wait", func() bool {
				r := s.reserved.of(s.org)
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.idle != nil
			})
			locked := make(chan struct{})
			go func() {
				for _, id := range []string{bucket, other} {
					s.locks.bucket(id)()
				}
				close(locked)
			}()
			select {
			case <-locked:
			case <-time.After(reservedWait / 2):
				t.Error("the buckets are locked")
			}
			cancel()
			for range cap(ended) {
				select {
				case err := <-ended:
					if err == nil {
						t.Error("it was done")
					}
				case <-time.After(reservedWait / 2):
					t.Fatal("it waits on after its request")
				}
			}
		})
	}
}
