package objects

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestReconcileBlobs: the files without a record that a start finds are removed, and those of uploads under way are not,
// whatever the clock says.
func TestReconcileBlobs(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	s.mustPut(t, bucket, "old", text(1<<20))
	s.close(t)
	files := func() []string {
		paths, err := filepath.Glob(filepath.Join(s.cfg.DataDir, Directory, "blobs", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	orphan := filepath.Join(filepath.Dir(files()[0]), "0123456789abcdef0123456789abcdef")
	if err := os.WriteFile(orphan, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.open(t)
	content := text(1 << 20)
	release := s.LockObject(bucket, "new") // until then its upload has no record
	done := make(chan error)
	go func() { done <- s.put(bucket, "new", content) }()
	testenv.Eventually(t, "the file of the upload", func() bool { return len(files()) == 3 })
	for _, path := range files() {
		at := time.Now().Add(-time.Hour)
		if path == orphan {
			at = time.Now().Add(time.Hour)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s.ReconcileBlobs(t.Context(), false)
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, err := s.get(bucket, "new"); err != nil || got != content {
		t.Errorf("the object that was being written: %d bytes, %v", len(got), err)
	}
	if len(files()) != 2 {
		t.Errorf("left: %v, also %s", files(), orphan)
	}
}

// TestReconcileWithoutMetadata: a start that cannot read the metadata removes nothing.
func TestReconcileWithoutMetadata(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	for _, key := range []string{"here", "away"} {
		s.mustPut(t, bucket, key, text(300_000))
	}
	away, err := s.object(bucket, "away")
	if err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, away)
	s.open(t)
	here, err := s.object(bucket, "here")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.core.Meta.Close(); err != nil {
		t.Fatal(err)
	}
	s.ReconcileBlobs(t.Context(), false)
	for _, o := range []model.Object{here, away} {
		if !s.core.Blobs.Has(blobstore.Ref(o.Blob)) {
			t.Errorf("the bytes of %s are gone", o.Key)
		}
	}
	if n, err := s.Away(); err == nil {
		t.Errorf("%d objects are said to be away", n)
	}
}
