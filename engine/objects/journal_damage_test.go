package objects

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// A note that cannot be applied, or decoded, is reported, and does not block later notes.
func TestNoteThatFails(t *testing.T) {
	t.Parallel()
	for name, encode := range map[string]func(bucket string) ([]byte, error){
		"applied": func(bucket string) ([]byte, error) {
			return (&objectNote{Act: actPut, Object: model.Object{Bucket: bucket, Key: "bad", Version: "too short"}}).encode()
		},
		"decoded": func(string) ([]byte, error) { return []byte("rubbish"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNoteThatFails(t, encode)
		})
	}
}

func testNoteThatFails(t *testing.T, encode func(bucket string) ([]byte, error)) {
	s := openStore(t)
	bucket := s.bucket(t, "files")
	note, err := encode(bucket)
	if err != nil {
		t.Fatal(err)
	}
	s.deliver([]blobstore.Entry{{Position: blobstore.Position(s.core.Meta.Applied() + 1), Note: note}})
	s.mustPut(t, bucket, "good", "good")
	if got := s.content(t, bucket); len(got) != 1 || got["good"] != "good" {
		t.Errorf("there are %v", got)
	}
	if b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket); err != nil || b.ObjectCount != 1 {
		t.Errorf("%d are counted, %v", b.ObjectCount, err)
	}
	found, err := s.advice("damaged_journal")
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Message, "(1)") {
		t.Errorf("advice %+v, %v", found, err)
	}
	s.now.Store(int64(journalDamageKept + time.Hour))
	if found, err := s.advice("damaged_journal"); err != nil || len(found) != 0 {
		t.Errorf("long after: %+v, %v", found, err)
	}
}

// The disk damages records that the metadata do not have yet: the damage is reported once, its segment is kept, and
// intact records are replayed.
func TestReplayOverDamage(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(t.TempDir(), core.MetadataFile)
	if err := durable.WriteStream(older, 0o600, s.core.Meta.Snapshot); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"first", "second", "third"} {
		s.mustPut(t, bucket, key, "the content of "+key)
	}
	s.close(t)
	s.flip(t, "the content of second")
	if err := os.Rename(older, filepath.Join(s.cfg.DataDir, core.MetadataFile)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.open(t)
		if got := fmt.Sprint(s.content(t, bucket)); got != "map[first:the content of first third:the content of third]" {
			t.Errorf("there are %v", got)
		}
		if found, err := s.advice("damaged_journal"); err != nil || len(found) != 1 || !strings.Contains(found[0].Message, "(1)") {
			t.Errorf("advice %+v, %v", found, err)
		}
		for _, key := range []string{"first", "third"} {
			if err := s.delete(bucket, key); err != nil {
				t.Fatal(err)
			}
		}
		segments := s.core.Blobs.Segments()
		if err := s.core.Meta.Flush(); err != nil { // so that the deletes are applied
			t.Fatal(err)
		}
		if err := s.compactOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kept := s.core.Blobs.Segments(); !slices.Contains(kept, 1) || slices.Contains(segments, 2) && slices.Contains(kept, 2) {
			t.Errorf("of the segments %v there are %v", segments, kept)
		}
		s.mustPut(t, bucket, "first", "the content of first")
		s.mustPut(t, bucket, "third", "the content of third")
		s.close(t)
	}
	s.open(t)
}
