package objects

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

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

// TestCompaction deletes most objects in a few segments: their space is reclaimed, and the others stay readable
// throughout.
func TestCompaction(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
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
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{Limit: 1})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("trash: %v, %v", list, err)
	}
	trashed = list.Items[0].Version
	if _, err := s.TrashObjectRestore(t.Context(), s.call(model.ActionTrashObjectRestore), trashed); err != nil {
		t.Fatal(err)
	}
	want["2099"] = "2099" + body[:60_000]
	s.now.Add(int64(2 * time.Hour))
	if err := s.PurgeObjects(t.Context()); err != nil {
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
	if err := s.compactOnce(t.Context()); err != nil {
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

// TestCompactionUnderTrash moves the bytes of objects whose bucket is in the trash: a restore brings them back.
func TestCompactionUnderTrash(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	kept, purged := s.bucket(t, "kept"), s.bucket(t, "purged")
	want, body := map[string]string{}, text(64<<10)
	for i := range 2100 { // two segments and more
		if content := fmt.Sprint(i) + body[:60_000]; i%10 == 0 {
			want[fmt.Sprint(i)] = content
			s.mustPut(t, kept, fmt.Sprint(i), content)
		} else {
			s.mustPut(t, purged, fmt.Sprint(i), content)
		}
	}
	before := s.journalSize(t)
	for _, bucket := range []string{kept, purged} {
		if _, err := s.BucketDelete(s.call(model.ActionBucketDelete), bucket, true); err != nil {
			t.Fatal(err)
		}
	}
	buckets, err := s.TrashBucketList(s.call(model.ActionTrashBucketList), core.Filter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.purgeBucket(s.call(model.ActionBucketPurge), buckets.Items[0], anyway); err != nil || buckets.Items[0].ID != purged {
		t.Fatal(buckets, err)
	}
	if err := s.core.RemoveDiscarded(); err != nil {
		t.Fatal(err)
	}
	if err := s.compactOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := s.journalSize(t); after > before*3/5 { // the newest segment stays
		t.Errorf("the journal has %d bytes of %d", after, before)
	}
	if _, err := s.TrashBucketRestore(t.Context(), s.call(model.ActionTrashBucketRestore), kept); err != nil {
		t.Fatal(err)
	}
	s.mustHold(t, kept, want)
	s.close(t)
	s.open(t)
	s.mustHold(t, kept, want)
}

// TestCompactionKeepsWhatARecoveryBringsBack: a small object that was replaced stays in the journal until the copy has the
// bytes of the large one that replaced it.
func TestCompactionKeepsWhatARecoveryBringsBack(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "compacted")
	var copied atomic.Bool
	s.mustPut(t, bucket, "key", "small")
	small, err := s.object(bucket, "key")
	if err != nil || small.Segment == 0 {
		t.Fatalf("%+v, %v", small, err)
	}
	s.close(t)
	s.open(t) // begins another segment
	s.CopyWith(func(blobstore.Ref) bool { return copied.Load() })
	s.mustPut(t, bucket, "key", text(1<<20))
	s.mustPut(t, bucket, "other", "small")
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, isCopied := range []bool{false, true} {
		copied.Store(isCopied)
		if err := s.compactOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if has := s.core.Blobs.Has(blobstore.Ref(small.Blob)); has == isCopied {
			t.Errorf("copied: %t, and the small object is there: %t", isCopied, has)
		}
	}
}
