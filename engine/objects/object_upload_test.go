package objects

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/engine/model"
)

// TestIfAbsentRace runs many concurrent uploads of one key.
func TestIfAbsentRace(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "race")
	for round := range 20 {
		var won atomic.Int32
		var winner atomic.Value
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				content := fmt.Sprint(round, i)
				_, err := s.ObjectUpload(t.Context(), s.call(model.ActionObjectUpload),
					Upload{Bucket: bucket, Key: fmt.Sprint(round), Body: strings.NewReader(content), Length: -1, IfAbsent: true})
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

// TestBucketDeleteRace deletes buckets while objects are uploaded into them: an acknowledged object must not be lost
// unless the deletion was forced.
func TestBucketDeleteRace(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for round := range 30 {
		bucket := s.bucket(t, fmt.Sprintf("race-%d", round))
		var wg sync.WaitGroup
		var stored atomic.Bool
		wg.Go(func() { stored.Store(s.put(bucket, "k", "x") == nil) })
		var deleted error
		wg.Go(func() { _, deleted = s.BucketDelete(s.call(model.ActionBucketDelete), bucket, false) })
		wg.Wait()
		if stored.Load() && deleted == nil {
			t.Fatal("an acknowledged object went with its bucket")
		}
		if stored.Load() {
			s.mustHold(t, bucket, map[string]string{"k": "x"})
		}
	}
}

// TestConcurrentChanges changes a few keys from many goroutines while others read, and compares the counters with the
// objects.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s := openStore(t)
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
