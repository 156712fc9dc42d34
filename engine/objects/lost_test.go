package objects

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestDropLost: an object whose bytes are nowhere is dropped, if it is new; all others stay.
func TestDropLost(t *testing.T) {
	s := openStore(t)
	bucket, large := s.bucket(t, "photos"), strings.Repeat("large ", 20_000)
	for key, content := range map[string]string{"small": "small", "kept": large, "away": large, "lost": large} {
		s.mustPut(t, bucket, key, content)
	}
	away, err := s.object(bucket, "away")
	if err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, away)
	s.open(t)
	lost, err := s.object(bucket, "lost")
	if err != nil {
		t.Fatal(err)
	}
	directory, id, _ := strings.Cut(lost.Blob, "-")
	if err := os.Remove(filepath.Join(blobDirectory(s.core), "blobs", directory, id)); err != nil {
		t.Fatal(err)
	}

	if n, err := s.DropLost(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("of older objects %d were dropped, %v", n, err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != want || err != nil {
			t.Errorf("%d were dropped, not %d, %v", n, want, err)
		}
	}
	for _, key := range []string{"small", "kept", "away"} {
		if _, err := s.object(bucket, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := s.object(bucket, "lost"); err == nil {
		t.Error("the object without bytes is there")
	}
}

// unreadable makes a directory one that cannot be read, until readable is called.
func unreadable(t *testing.T, dir string) (readable func()) {
	t.Helper()
	if err := errors.Join(os.Rename(dir, dir+"-aside"), os.Symlink(dir, dir)); err != nil { // too many levels of links
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.Remove(dir), os.Rename(dir+"-aside", dir)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDropLostOnABrokenDisk: bytes that the disk fails to find are not taken for lost.
func TestDropLostOnABrokenDisk(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket, large := s.bucket(t, "photos"), strings.Repeat("large ", 20_000)
	want := map[string]string{"small": "small", "large": large}
	for key, content := range want {
		s.mustPut(t, bucket, key, content)
	}
	for _, dir := range []string{"blobs/00000001", "journal"} {
		readable := unreadable(t, filepath.Join(blobDirectory(s.core), dir))
		n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour))
		readable()
		if n != 0 || err != nil {
			t.Errorf("%s: %d were dropped, %v", dir, n, err)
		}
	}
	s.mustHold(t, bucket, want)
}

// TestDropLostAfterDamageToTheList: what a damaged list of what is away may have named is not taken for lost.
func TestDropLostAfterDamageToTheList(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(text []byte){
		"a record":  func(text []byte) { text[len(text)-10] ^= 1 },
		"all of it": func(text []byte) { clear(text) },
	} {
		s := openStore(t)
		bucket := s.bucket(t, "photos")
		s.mustPut(t, bucket, "large", strings.Repeat("large ", 20_000))
		o, err := s.object(bucket, "large")
		if err != nil {
			t.Fatal(err)
		}
		sendAway(t, s, o)
		lists, err := filepath.Glob(filepath.Join(blobDirectory(s.core), "away", "0*"))
		if err != nil || len(lists) != 1 {
			t.Fatal(lists, err)
		}
		text, err := os.ReadFile(lists[0])
		if err != nil {
			t.Fatal(err)
		}
		damage(text)
		if err := os.WriteFile(lists[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.open(t)
			if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
				t.Errorf("damage to %s: %d were dropped, %v", name, n, err)
			}
			s.close(t)
		}
		s.open(t)
	}
}

// TestCompleteOnABrokenDisk: an upload whose bytes the disk fails to find stays, and goes on once it does.
func TestCompleteOnABrokenDisk(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "photos")
	u, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: "k", Length: 10})
	if err == nil {
		u, err = s.UploadAppend(t.Context(), s.call(model.ActionUploadAppend), bucket, u.ID, 0, strings.NewReader("12345"))
	}
	if err != nil {
		t.Fatal(err)
	}
	readable := unreadable(t, filepath.Join(blobDirectory(s.core), "parts"))
	if _, err := s.CompleteUpload(t.Context(), s.call(model.ActionUploadAppend), u); err == nil {
		t.Error("an upload without its bytes is complete")
	}
	readable()
	if u, err = s.UploadAppend(t.Context(), s.call(model.ActionUploadAppend), bucket, u.ID, 5, strings.NewReader("67890")); err != nil || !u.Complete {
		t.Errorf("the upload goes on: complete %t, %v", u.Complete, err)
	}
	s.mustHold(t, bucket, map[string]string{"k": "1234567890"})
}

// TestDropLostBringsBack: what a lost object replaced comes back, the newest of which the copy has the bytes.
func TestDropLostBringsBack(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "photos")
	copied := map[blobstore.Ref]bool{}
	s.CopyWith(func(ref blobstore.Ref) bool { return copied[ref] })
	put := func(key, content string, isCopied bool) model.Object {
		t.Helper()
		s.mustPut(t, bucket, key, content)
		o, err := s.object(bucket, key)
		if err != nil {
			t.Fatal(err)
		}
		copied[blobstore.Ref(o.Blob)] = isCopied
		return o
	}
	large := func(text string) string { return strings.Repeat(text, 70_000) }
	put("small first", "small", false)
	lost := []model.Object{put("small first", large("b"), false)}
	kept := []model.Object{put("large", large("first"), true)}
	lost = append(lost, put("large", large("second"), false), put("large", large("third"), false), put("only", large("x"), false))
	kept = append(kept, put("copied later", large("first"), true), put("copied later", large("first"), false))
	lost = append(lost, put("copied later", large("third"), false))
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, kept...)
	for _, o := range lost {
		_ = removeBytes(s, o)
	}
	s.open(t)
	if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != 4 || err != nil {
		t.Errorf("%d were dropped, %v", n, err)
	}
	s.FetchWith(func(context.Context, blobstore.Away, int64, int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(large("first"))), nil
	})
	for key, want := range map[string]string{"small first": "small", "large": large("first"), "copied later": large("first")} {
		if got, err := s.get(bucket, key); err != nil || got != want {
			t.Errorf("%s has %d bytes, %v", key, len(got), err)
		}
	}
	if o, err := s.object(bucket, "copied later"); err != nil || o.Version != kept[2].Version || o.Replaced != nil {
		t.Errorf("the version that was copied later did not come back: %+v, %v", o, err)
	}
	if _, err := s.object(bucket, "only"); err == nil {
		t.Error("an object that replaced none is there")
	}
	b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
	if err != nil || b.ObjectCount != 3 || b.SizeBytes != int64(len("small")+2*len(large("first"))) {
		t.Errorf("the bucket counts %d objects, %d bytes, %v", b.ObjectCount, b.SizeBytes, err)
	}
}

// TestDropLostAfterReplay: what a recovery replays discards the bytes of what was replaced. They stay until it is known whether
// that comes back.
func TestDropLostAfterReplay(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "photos")
	s.CopyWith(func(blobstore.Ref) bool { return true })
	s.core.KeepDiscarded()
	first := strings.Repeat("first", 70_000)
	s.mustPut(t, bucket, "key", first)
	s.mustPut(t, bucket, "key", strings.Repeat("second", 70_000))
	newest, err := s.object(bucket, "key")
	if err == nil {
		err = errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded(), removeBytes(s, newest))
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != 1 || err != nil {
		t.Errorf("%d were dropped, %v", n, err)
	}
	s.core.ReleaseDiscarded()
	if err := s.core.RemoveDiscarded(); err != nil {
		t.Error(err)
	}
	if got, err := s.get(bucket, "key"); err != nil || got != first {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestReplacedChain: an object remembers those that it replaced down to the newest copied one, and a limited number of them.
func TestReplacedChain(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "photos")
	copied := map[blobstore.Ref]bool{}
	s.CopyWith(func(ref blobstore.Ref) bool { return copied[ref] })
	put := func() (o model.Object, chain []string) {
		t.Helper()
		s.mustPut(t, bucket, "key", strings.Repeat("large", 70_000))
		o, err := s.object(bucket, "key")
		if err != nil {
			t.Fatal(err)
		}
		for r := o.Replaced; r != nil; r = r.Replaced {
			chain = append(chain, r.Version)
		}
		return o, chain
	}
	first, _ := put()
	copied[blobstore.Ref(first.Blob)] = true
	second, chain := put()
	if !slices.Equal(chain, []string{first.Version}) {
		t.Errorf("the second replaced %q", chain)
	}
	third, chain := put()
	if !slices.Equal(chain, []string{second.Version, first.Version}) {
		t.Errorf("the third replaced %q", chain)
	}
	copied[blobstore.Ref(second.Blob)] = true
	fourth, chain := put()
	if !slices.Equal(chain, []string{third.Version, second.Version}) {
		t.Errorf("the fourth replaced %q, and the second was copied", chain)
	}
	newest := fourth.Version
	for range 2 * maxReplaced {
		var o model.Object
		o, chain = put()
		if chain[0] != newest || chain[len(chain)-1] != second.Version || len(chain) > maxReplaced {
			t.Fatalf("%s replaced %q", o.Version, chain)
		}
		newest = o.Version
	}
}

// TestDropLostTrash: deleted objects without bytes are dropped too.
func TestDropLostTrash(t *testing.T) {
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket, large := s.bucket(t, "photos"), strings.Repeat("large ", 20_000)
	for _, key := range []string{"lost", "there"} {
		s.mustPut(t, bucket, key, large)
	}
	o, err := s.object(bucket, "lost")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"lost", "there"} {
		if err := s.delete(bucket, key); err != nil {
			t.Fatal(err)
		}
	}
	directory, id, _ := strings.Cut(o.Blob, "-")
	if err := os.Remove(filepath.Join(blobDirectory(s.core), "blobs", directory, id)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != want || err != nil {
			t.Errorf("%d were dropped, not %d, %v", n, want, err)
		}
	}
	list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), TrashFilter{}, core.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Key != "there" {
		t.Errorf("the trash has %+v, %v", list.Items, err)
	}
}
