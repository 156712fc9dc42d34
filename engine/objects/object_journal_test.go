package objects

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Notes are encoded by hand and decoded by encoding/json.
func TestNotesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	object := model.Object{Bucket: "bucket_1", Key: `"<größe & maß>\`, Version: "v", Blob: "b", Segment: 7, SizeBytes: 1, LastModified: time.Unix(1, 2).UTC()}
	for _, note := range []*objectNote{
		{Act: actPut, Object: object, Upload: "upl_1", Idempotent: "01abc", Audit: &model.AuditEntry{ID: "evt_1", At: time.Unix(3, 0).UTC(), Details: map[string]string{"size_bytes": "1"}}},
		{Act: actDelete, Object: model.Object{Bucket: "bucket_1", Key: "k"}, Keep: true, Audit: &model.AuditEntry{}},
		{Act: actMove, Object: object, From: "j-1-2"},
	} {
		text, err := note.encode()
		if err != nil {
			t.Fatal(err)
		}
		var got objectNote
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if diff := cmp.Diff(note, &got, cmpopts.IgnoreUnexported(objectNote{})); diff != "" {
			t.Error(diff)
		}
		if want, _ := json.Marshal(note); string(text) != string(want) {
			t.Errorf("by hand\n%s, by encoding/json\n%s", text, want)
		}
	}
}

// TestReplay drops everything that the metadata received after a moment, as a crash may, and replays the journal.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := openStore(t)
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
	for i := range 3 { // replaced files: the old ones are unlinked after the replay
		want["large"] = text(100_000 + i)
		s.mustPut(t, bucket, "large", want["large"])
	}
	s.mustPut(t, dropped, "gone", "gone")
	s.mustHold(t, bucket, want)
	entries, err := s.core.AuditVerify(s.call(model.ActionAuditVerify))
	if err != nil || len(entries.Faults) > 0 {
		t.Fatal(entries, err)
	}
	s.close(t)
	for range 2 { // the second replay starts within what the first has replayed
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		s.open(t)
		s.mustHold(t, bucket, want)
		s.mustHold(t, dropped, map[string]string{"gone": "gone"})
		again, err := s.core.AuditVerify(s.call(model.ActionAuditVerify))
		if err != nil || again.Entries < entries.Entries-2 || len(again.Faults) > 0 { // the earlier entries of reads are gone
			t.Errorf("%d audit entries of %d came back, %v, %v", again.Entries, entries.Entries, again.Faults, err)
		}
		s.close(t)
	}
	s.open(t)
	s.mustHold(t, bucket, want)
}
