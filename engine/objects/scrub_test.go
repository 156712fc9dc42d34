package objects

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// flip changes one byte of content on the disk.
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

// TestScrub damages a small and a large object: both are found and reported, and neither is served.
func TestScrub(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "scrubbed")
	content := map[string]string{"small": text(3000), "large": text(700_000), "good": text(3000), "good large": text(500_000)}
	for key, c := range content {
		s.mustPut(t, bucket, key, c)
	}
	if err := s.scrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.damageAdvice(); err != nil || len(found) != 0 {
		t.Fatalf("before any damage: %v, %v", found, err)
	}
	s.flip(t, content["small"])
	s.flip(t, content["large"])
	if err := s.scrubOnce(t.Context()); err != nil {
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

// TestScrubTrash: objects in the trash, and those of a bucket in the trash, are read too, over several pages and restarts of the
// scrub.
func TestScrubTrash(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	kept, gone := s.bucket(t, "kept"), s.bucket(t, "gone")
	contents := map[string]string{"kept": "a" + text(3000), "overwritten": "b" + text(3000), "deleted": "c" + text(700_000), "of a deleted bucket": "d" + text(3000)}
	for n := range scrubPage + 3 {
		key := fmt.Sprintf("key %d", n)
		s.mustPut(t, kept, key, text(10))
		s.mustPut(t, kept, key, text(11))
	}
	for key, content := range contents {
		bucket := kept
		if key == "of a deleted bucket" {
			bucket = gone
		}
		s.mustPut(t, bucket, key, content)
	}
	s.mustPut(t, kept, "overwritten", "new")
	if err := s.delete(kept, "deleted"); err != nil {
		t.Fatal(err)
	}
	s.deleteBucket(t, gone)
	if err := s.scrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.damageAdvice(); err != nil || len(found) != 0 {
		t.Fatalf("before any damage: %v, %v", found, err)
	}
	for _, content := range contents {
		s.flip(t, content)
	}
	if err := s.scrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := s.damageAdvice()
	if err != nil || len(found) != len(contents) {
		t.Fatalf("advice %+v, %v", found, err)
	}
	for _, a := range found {
		if inTrash := a.Resource.Name != "kept"; inTrash != (a.Severity == model.SeverityWarning) || inTrash != strings.Contains(a.Message, "in the trash") {
			t.Errorf("advice %+v", a)
		}
	}
	it, err := meta.Value(s.core.Meta.View, readScrub)
	if err != nil || it.InTrash || it.Bucket != "" || len(it.Damaged) != len(contents) {
		t.Errorf("after the scrub: %+v, %v", it, err)
	}
}

// A temporary read error says nothing about an object's bytes, and an object that can later be read completely is not
// damaged.
func TestDamageThatPasses(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "passing")
	for _, test := range []struct {
		err   error
		named int
	}{{syscall.EMFILE, 0}, {syscall.ENOMEM, 0}, {syscall.EIO, 1}, {blobstore.ErrNotFound, 1}, {blobstore.ErrDamaged, 1}} {
		s.mustPut(t, bucket, "k", text(3000))
		object, err := s.object(bucket, "k")
		if err != nil {
			t.Fatal(err)
		}
		s.Unreadable(object, fmt.Errorf("read blob: %w", test.err))
		if found, err := s.damageAdvice(); err != nil || len(found) != test.named {
			t.Errorf("%v: advice %+v, %v", test.err, found, err)
		}
		if err := s.scrubOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, err := s.damageAdvice(); err != nil || len(found) != 0 {
			t.Errorf("%v, and then it was read whole: advice %+v, %v", test.err, found, err)
		}
	}
}

// Requests for an object that is known to be damaged wait for no transaction, however many there are.
func TestKnownDamageIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "known")
	s.mustPut(t, bucket, "k", text(3000))
	object, err := s.object(bucket, "k")
	if err != nil {
		t.Fatal(err)
	}
	s.Unreadable(object, blobstore.ErrDamaged)
	told := make(chan struct{})
	err = s.core.Meta.Update(func(*meta.Tx) error {
		go func() {
			defer close(told)
			s.Unreadable(object, blobstore.ErrDamaged)
		}()
		select {
		case <-told:
			return nil
		case <-time.After(10 * time.Second):
			return fmt.Errorf("it waits for the transaction")
		}
	})
	if err != nil {
		t.Error(err)
	}
	<-told
}

// TestScrubAfterClockAhead: a scrub that ended while the clock was years ahead does not put off the next one by years.
func TestScrubAfterClockAhead(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket, content := s.bucket(t, "scrubbed"), text(3000)
	s.mustPut(t, bucket, "k", content)
	s.now.Store(int64(10 * 365 * 24 * time.Hour))
	if err := s.scrubIfDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.flip(t, content)
	found := func(want int) {
		t.Helper()
		if err := s.scrubIfDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := s.damageAdvice(); err != nil || len(all) != want {
			t.Errorf("found %+v, %v, not %d", all, err, want)
		}
	}
	found(0)
	s.now.Store(0)
	found(1)
}
