package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// Notes are written by hand and read by encoding/json.
func TestNotesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	object := model.Object{Bucket: "bucket_1", Key: `"<größe & maß>\`, Version: "v", Blob: "b", Segment: 7, SizeBytes: 1, LastModified: time.Unix(1, 2).UTC()}
	for _, note := range []*objects.ObjectNote{
		{Act: objects.ActPut, Object: object, Upload: "upl_1", Once: "01abc", Audit: &model.AuditEntry{ID: "evt_1", At: time.Unix(3, 0).UTC(), Details: map[string]string{"size_bytes": "1"}}},
		{Act: objects.ActDelete, Object: model.Object{Bucket: "bucket_1", Key: "k"}, Keep: true, Audit: &model.AuditEntry{}},
		{Act: objects.ActMove, Object: object, From: "j-1-2"},
	} {
		text, err := note.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var got objects.ObjectNote
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if diff := cmp.Diff(note, &got, cmpopts.IgnoreUnexported(objects.ObjectNote{})); diff != "" {
			t.Error(diff)
		}
		if want, _ := json.Marshal(note); string(text) != string(want) {
			t.Errorf("by hand\n%s, by encoding/json\n%s", text, want)
		}
	}
}
