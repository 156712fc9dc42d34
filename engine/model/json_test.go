package model

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is written by hand is what encoding/json writes, whatever the text.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(of string) string {
			if rapid.Bool().Draw(t, of+" is bytes") {
				return string(rapid.SliceOf(rapid.Byte()).Draw(t, of))
			}
			return rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`)).Draw(t, of)
		}
		at := time.Unix(rapid.Int64Range(-1<<31, 1<<38).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds")).
			In(time.FixedZone("", 60*rapid.IntRange(-25*60, 25*60).Draw(t, "zone")))
		object := &Object{
			Bucket: text("bucket"), Key: text("key"), Version: text("version"), Blob: text("blob"),
			Segment: rapid.Uint32().Draw(t, "segment"), SizeBytes: rapid.Int64().Draw(t, "size"), ContentType: text("type"),
			CRC32C: rapid.Uint32().Draw(t, "crc"), ChecksumSHA256: text("sha"), LastModified: at,
		}
		same(t, object, object.AppendJSON)
		entry := &AuditEntry{
			ID: text("id"), At: at, Organization: text("organization"),
			Actor:  Actor{Type: ActorType(text("actor type")), ID: text("actor"), Name: text("actor name")},
			Action: Action(text("action")), Resource: Resource{Type: ResourceType(text("resource type")), ID: text("resource"), Name: text("name")},
			Outcome: Outcome(text("outcome")), ErrorCode: Code(text("code")), RequestID: text("request"), IP: text("ip"), UserAgent: text("agent"),
			PreviousHash: text("previous"), Hash: text("hash"),
		}
		if rapid.Bool().Draw(t, "has details") {
			entry.Details = map[string]string{}
			for range rapid.IntRange(0, 12).Draw(t, "details") {
				entry.Details[text("name of a detail")] = text("detail")
			}
		}
		same(t, entry, entry.AppendJSON)
	})
}

func same(t *rapid.T, v any, appendJSON func([]byte) ([]byte, error)) {
	want, wantErr := json.Marshal(v)
	got, err := appendJSON([]byte("before"))
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("by hand %v, by encoding/json %v", err, wantErr)
	}
	if err == nil && string(got) != "before"+string(want) {
		t.Fatalf("by hand\n%s, by encoding/json\n%s", got[len("before"):], want)
	}
}
