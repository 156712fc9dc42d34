package offsite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
)

// preparedDirectory returns the location of a prepared directory, and the directory.
func preparedDirectory(t testing.TB) (at Location, dir string) {
	t.Helper()
	dir = t.TempDir()
	keys, err := ParsePassphrases("correct horse\n")
	if err != nil {
		t.Fatal(err)
	}
	at = Location{URL: "file://" + dir, Keys: keys}
	if _, err := Initialize(t.Context(), at, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	return at, dir
}

// open opens the repository at a location.
func (at Location) open(t testing.TB) *connection {
	t.Helper()
	c, err := connect(t.Context(), at, objectstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	return c
}

// copyOnce writes a checkpoint with two files, as a machine of its own.
func (c *connection) copyOnce(t testing.TB, content string) {
	t.Helper()
	c.copyWith(t, content, stream.Options{Interval: time.Millisecond})
}

// copyWith is copyOnce with options of the writer.
func (c *connection) copyWith(t testing.TB, content string, o stream.Options) {
	t.Helper()
	c.copyEntries(t, content, o, stream.Entry{Kind: KindSecret, Name: core.KeyFile, Data: []byte("key")})
}

// copyEntries is copyWith with other entries.
func (c *connection) copyEntries(t testing.TB, content string, o stream.Options, others ...stream.Entry) {
	t.Helper()
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, c.repository), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Checkpoint(t.Context(), func(ctx context.Context) ([]stream.Entry, error) {
		entries := slices.Clone(others)
		for _, name := range []string{"a", "b"} {
			ref, err := w.Store(ctx, bytes.NewReader([]byte(content+name)))
			if err != nil {
				return nil, err
			}
			entries = append(entries, stream.Entry{Kind: KindBlob, Name: name, Ref: ref})
		}
		return entries, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestMarkerMissing: a copy that has lost its marker is not taken for an empty prefix, and what is said helps to get it back.
func TestMarkerMissing(t *testing.T) {
	t.Parallel()
	at, dir := preparedDirectory(t)
	at.open(t).copyOnce(t, "content ")
	marker := filepath.Join(dir, "holdfast")
	text, err := os.ReadFile(marker)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	_, verify := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1})
	_, list := List(t.Context(), at)
	_, is := IsInitialized(t.Context(), at.URL)
	_, initialize := Initialize(t.Context(), at, nil, time.Now())
	for what, err := range map[string]error{"verify": verify, "list": list, "is initialized": is, "initialize": initialize} {
		if model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "its marker, the object `holdfast`, is missing: bring that object back") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if says := explain(verify); !strings.Contains(says, "marker") {
		t.Errorf("the status says: %s", says)
	}
	if err := os.WriteFile(marker, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := List(t.Context(), at); err != nil || len(found.Points) == 0 {
		t.Errorf("with the marker back: %+v, %v", found, err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	at, dir := preparedDirectory(t)
	verify := func(share float64) Verified {
		t.Helper()
		v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: share})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if _, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1}); err == nil || !strings.Contains(err.Error(), "no point") {
		t.Errorf("of an empty copy: %v", err)
	}
	at.open(t).copyOnce(t, "first ")
	at.open(t).copyOnce(t, "second ")
	if v := verify(1); v.Err() != nil || v.Point == nil || v.Points != 2 || v.Read != v.Files || v.Files < 4 {
		t.Errorf("of a good copy: %+v", v)
	}
	if v := verify(0.01); v.Err() != nil || v.Read != 1 {
		t.Errorf("of a sample: %+v", v)
	}

	// One file of the first epoch is damaged: it is named, and the newest point is good.
	parts, err := filepath.Glob(filepath.Join(dir, "e/00000001/file/*/*"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	text, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(parts[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	v := verify(1)
	if v.Err() == nil || v.Point == nil || len(v.Damage) != 1 || !strings.Contains(v.Damage[0].Object, "00000001") || !slices.Equal(v.Affected(), []string{"large objects"}) {
		t.Errorf("of a damaged file: %+v", v)
	}
	if says := damageMessage(v); !strings.Contains(says, "1 object cannot be read: large objects. A recovery passes over") {
		t.Errorf("the operator is told: %s", says)
	}

	// A sample reads it again, whatever else it reads.
	for range 20 {
		again, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 0.01, Again: v.Damage})
		if err != nil || len(again.Damage) != 1 || again.Read > 2 {
			t.Fatalf("of a sample after damage: %+v, %v", again, err)
		}
	}

	// Nothing of the log is left: nothing can be recovered.
	for _, e := range []string{"00000001", "00000002"} {
		if err := os.RemoveAll(filepath.Join(dir, "e", e, "point")); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1}); err == nil && v.Err() == nil {
		t.Errorf("without points: %+v, %v", v, err)
	}
}

// TestVerifyLacking: a copy whose every point lacks a body can still be recovered, and what it lacks is named once.
func TestVerifyLacking(t *testing.T) {
	t.Parallel()
	at, dir := preparedDirectory(t)
	for _, content := range []string{"first ", "second "} {
		at.open(t).copyOnce(t, content)
	}
	for _, e := range []string{"00000001", "00000002"} {
		removeBody(t, at, dir, e)
	}
	v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1})
	if err != nil || v.Point == nil || v.Err() == nil || !slices.Equal(v.Affected(), []string{"large objects"}) {
		t.Errorf("%+v, %v", v, err)
	}
	points := slices.DeleteFunc(v.Damage, func(d Damage) bool { return !strings.Contains(d.Object, "/point/") })
	if len(points) != 1 || !strings.Contains(points[0].Object, "00000002") {
		t.Errorf("points that are named: %+v", points)
	}
}

// TestWithoutKey: a point without secret.key is named, and a recovery refuses it before it claims the copy.
func TestWithoutKey(t *testing.T) {
	t.Parallel()
	at, dir := preparedDirectory(t)
	at.open(t).copyEntries(t, "content ", stream.Options{Interval: time.Millisecond})
	v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1})
	if err != nil || v.Err() == nil || len(v.Damage) != 1 || !slices.Equal(v.Affected(), []string{"the secrets of the appliance"}) {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = Recover(t.Context(), RecoverOptions{Location: at, DataDir: t.TempDir(), TakeOver: true, Progress: func(Progress) {}})
	if err == nil || !strings.Contains(err.Error(), "no secret.key") {
		t.Errorf("recovered without a key: %v", err)
	}
	if claimed, err := filepath.Glob(filepath.Join(dir, "e/*")); len(claimed) != 1 {
		t.Errorf("the copy has the epochs %q, %v", claimed, err)
	}
}

// removeBody removes a file of a body of an epoch.
func removeBody(t *testing.T, at Location, dir, epoch string) {
	t.Helper()
	c := at.open(t)
	h, err := c.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range h.Points(t.Context()) {
		if err != nil || p.Epoch.String() != epoch {
			continue
		}
		checkpoint, err := c.repository.Checkpoint(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range c.repository.Catalog(t.Context(), checkpoint) {
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "e", epoch, "file", fmt.Sprintf("%016x/%06x", e.Ref.ID, 0))); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("epoch %s has no point", epoch)
}

func TestListAndSilence(t *testing.T) {
	t.Parallel()
	at, _ := preparedDirectory(t)
	if _, err := List(t.Context(), at); err == nil || !strings.Contains(err.Error(), "nothing to recover") {
		t.Errorf("of an empty copy: %v", err)
	}
	c := at.open(t)
	c.copyOnce(t, "first ")
	found, err := List(t.Context(), at)
	if err != nil || len(found.Machines) != 1 || len(found.Points) != 1 || found.Machines[0].Name != "test" || time.Since(found.Latest) > time.Minute {
		t.Errorf("%+v, %v", found, err)
	}

	// A machine that goes on writing is noticed within a few seconds.
	h, err := c.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	saw := make(chan struct{}, 100)
	silent := make(chan error, 1)
	go func() { silent <- c.awaitSilence(t.Context(), h, func(Progress) { saw <- struct{}{} }) }()
	<-saw
	c.copyOnce(t, "second ")
	if err := <-silent; err == nil || !strings.Contains(err.Error(), "--take-over") {
		t.Errorf("of a machine that lives: %v", err)
	}
}

// TestDeletedCopy: a copy that was deleted in a bucket that keeps versions is not taken for none, and is whole again without
// the delete markers.
func TestDeletedCopy(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			bucket := server.Bucket(t, true)
			at := initializeLocked(t, server, bucket)
			at.open(t).copyWith(t, "first", stream.Options{Interval: time.Millisecond, Lock: objectstore.Governance, Retention: 24 * time.Hour})
			server.Hide(t, bucket)
			_, isThere := IsInitialized(t.Context(), at.URL)
			_, init := Initialize(t.Context(), at, nil, time.Now())
			_, verify := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1})
			for what, err := range map[string]error{"IsInitialized": isThere, "Initialize": init, "Verify": verify} {
				if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "docs/recovery.md") {
					t.Errorf("%s: %v", what, err)
				}
			}
			server.Unhide(t, bucket)
			if v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1}); err != nil || v.Err() != nil || v.Points != 1 {
				t.Errorf("without delete markers: %+v, %v", v, err)
			}
			if _, err := Initialize(t.Context(), Location{URL: at.URL + "2", Keys: at.Keys}, nil, time.Now()); err != nil {
				t.Errorf("beside it: %v", err)
			}
		})
	}
}
