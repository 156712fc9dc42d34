package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/engine"
	"holdfast/engine/model"
)

func (w *world) makeBucket(tb testing.TB, key, once, name string) reply {
	tb.Helper()
	return w.do(tb, request{
		method: "POST", path: "/buckets", key: key, contentType: "application/json",
		header: map[string]string{onceHeader: once},
		body:   `{"project":"` + w.org.project + `","name":"` + name + `"}`,
	})
}

func TestIdempotencyKey(t *testing.T) {
	w := open(t)
	first := w.makeBucket(t, w.org.full, "k1", "first")
	made := get[Bucket](t, first)
	again := w.makeBucket(t, w.org.full, "k1", "first")
	if string(again.data) != string(first.data) || again.header.Get(replayedHeader) != "true" || first.header.Get(replayedHeader) != "" {
		t.Errorf("the first answer\n%s\nand again (%v)\n%s", first.text, again.header, again.text)
	}
	if e := w.entry(t, w.org.organization, again.header.Get("X-Request-Id")); e.Details["replayed"] != "true" {
		t.Errorf("the audit entry says %v", e.Details)
	}
	if other := w.makeBucket(t, w.org.full, "k1", "second"); other.status != http.StatusConflict || !strings.Contains(other.msg, onceHeader) {
		t.Errorf("another body: %s", other.text)
	}
	// Another API key, another key, no key: the name is taken.
	for name, r := range map[string]reply{
		"another API key": w.makeBucket(t, w.org.developer, "k1", "first"),
		"another key":     w.makeBucket(t, w.org.full, "k2", "first"),
	} {
		if r.status != http.StatusConflict || !strings.Contains(r.msg, "exists already") {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	// What was refused is not kept: once the way is free the same key works.
	w.do(t, request{method: "DELETE", path: "/buckets/" + made.ID, key: w.org.full})
	if r := w.makeBucket(t, w.org.full, "k2", "first"); r.status != http.StatusOK {
		t.Errorf("after a refusal: %s", r.text)
	}
	for _, bad := range []string{strings.Repeat("x", 256), "ü"} {
		if r := w.makeBucket(t, w.org.full, bad, "third"); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.msg, onceHeader) {
			t.Errorf("%q: %s", bad, r.text)
		}
	}
}

// The key does not let anybody past the gate.
func TestIdempotencyKeyNeedsTheScopeAgain(t *testing.T) {
	w := open(t)
	secret, key, err := w.engine.KeyCreate(&model.Call{Organization: w.org.organization}, newTestKey())
	if err != nil {
		t.Fatal(err)
	}
	if r := w.makeBucket(t, secret.Reveal(), "k", "first"); r.status != http.StatusOK {
		t.Fatal(r.text)
	}
	if _, err := w.engine.KeyRevoke(&model.Call{Organization: w.org.organization}, key.ID); err != nil {
		t.Fatal(err)
	}
	if r := w.makeBucket(t, secret.Reveal(), "k", "first"); r.status != http.StatusUnauthorized {
		t.Errorf("the answer is given to a revoked key: %s", r.text)
	}
}

func TestIdempotencyKeyOfACrowd(t *testing.T) {
	w := open(t)
	for round := range 5 {
		var done, replayed, busy atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r := w.makeBucket(t, w.org.full, fmt.Sprintf("crowd %d", round), fmt.Sprintf("crowd-%d", round))
				switch {
				case r.status == http.StatusOK && r.header.Get(replayedHeader) == "true":
					replayed.Add(1)
				case r.status == http.StatusOK:
					done.Add(1)
				case r.status == http.StatusConflict && strings.Contains(r.msg, "under way"):
					busy.Add(1)
				default:
					t.Errorf("%s", r.text)
				}
			})
		}
		all.Wait()
		if done.Load() != 1 {
			t.Errorf("it was done %d times (%d replayed, %d busy)", done.Load(), replayed.Load(), busy.Load())
		}
	}
}

// TestUploadsHeedNoIdempotencyKey, and the description says so: what is sent is
// stored, also with the same header, and If-None-Match keeps what is there.
func TestUploadsHeedNoIdempotencyKey(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "files")
	upload := func(body, match string) reply {
		header := map[string]string{onceHeader: "k1"}
		if match != "" {
			header["If-None-Match"] = match
		}
		return w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=a", key: w.org.full, header: header, body: body})
	}
	for _, body := range []string{"one", "another", "one"} {
		got := upload(body, "")
		if got.status != http.StatusOK || get[Object](t, got).SizeBytes != int64(len(body)) || got.header.Get(replayedHeader) != "" {
			t.Errorf("%s: %d %s", body, got.status, got.text)
		}
	}
	if got := upload("one", "*"); got.status != http.StatusConflict {
		t.Errorf("with If-None-Match: %d %s", got.status, got.text)
	}
	if described := w.doc.Paths.Find("/buckets/{id}/objects").Post; !strings.Contains(described.Description, onceHeader) {
		t.Errorf("the description says nothing of it: %s", described.Description)
	}
}

func newTestKey() engine.NewKey {
	return engine.NewKey{Name: "test", Preset: model.PresetDeveloper, Source: model.KeySourceOperator}
}
