package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// TestUnknownToOlderMetadata: what an older holdfast.db does not know goes to quarantine, or stays where it is until the
// copy is no longer recent, however many starts there are.
func TestUnknownToOlderMetadata(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	early := s.bucket(t, "early")
	older := filepath.Join(t.TempDir(), "older.db")
	if err := durable.WriteStream(older, 0o600, s.core.Meta.Snapshot); err != nil {
		t.Fatal(err)
	}
	late := s.bucket(t, "late")
	body := text(60_000)
	for i := range 1200 { // a segment and more, and nowhere else
		s.mustPut(t, late, fmt.Sprint(i), body)
	}
	segments := s.core.Blobs.Segments()
	s.mustPut(t, late, "away", strings.Repeat("large ", 20_000))
	o, err := s.object(late, "away")
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: early, Key: "upload", Length: 10})
	if err == nil {
		u, err = s.UploadAppend(t.Context(), s.call(model.ActionUploadAppend), early, u.ID, 0, strings.NewReader("12345"))
	}
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	sendAway(t, s, o)
	metadata := filepath.Join(s.cfg.DataDir, core.MetadataFile)
	if err := os.Rename(older, metadata); err != nil {
		t.Fatal(err)
	}
	until, err := s.cfg.Clock().Add(72 * time.Hour).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	db, err := meta.Open(metadata)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(func(tx *meta.Tx) error { return tx.PutSetting(core.OlderSetting, until) }), db.Close()); err != nil {
		t.Fatal(err)
	}
	start := func(older bool) {
		t.Helper()
		s.open(t)
		s.believe()
		if err := errors.Join(s.core.Meta.Flush(), s.RecoverUploads(older), s.ReconcileBlobs(t.Context(), older), s.compactOnce(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	for _, older := range []bool{true, false} {
		start(older)
		if _, err := s.core.Blobs.Listed(blobstore.Ref(o.Blob)); err != nil {
			t.Errorf("older %t: the object that is away: %v", older, err)
		}
		part, err := os.ReadFile(filepath.Join(s.cfg.DataDir, core.QuarantineDir, "uploads", u.Part))
		if err != nil || !strings.HasPrefix(string(part), "12345") {
			t.Errorf("older %t: the part of the upload: %q, %v", older, part, err)
		}
		if left := s.core.Blobs.Segments(); len(left) < len(segments) || left[0] != segments[0] {
			t.Errorf("older %t: the segments are %v, and were %v", older, left, segments)
		}
		s.close(t)
	}
	s.now.Add(int64(73 * time.Hour))
	start(false)
	if _, err := s.core.Blobs.Listed(blobstore.Ref(o.Blob)); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("later the object that is away: %v", err)
	}
	if left := s.core.Blobs.Segments(); len(left) > 0 && left[0] == segments[0] {
		t.Errorf("later the segments are %v, and were %v", left, segments)
	}
}

// TestReconcileTellsWhetherItHasEnded: only then may the next start take what it finds for orphans.
func TestReconcileTellsWhetherItHasEnded(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	s.mustPut(t, s.bucket(t, "files"), "k", text(300_000))
	s.close(t)
	s.open(t)
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.ReconcileBlobs(ended, true); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that ends: %v", err)
	}
	if err := s.ReconcileBlobs(t.Context(), true); err != nil {
		t.Errorf("a start: %v", err)
	}
}
