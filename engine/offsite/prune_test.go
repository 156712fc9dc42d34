package offsite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
)

// initializeLocked prepares a copy in a bucket with Object Lock.
func initializeLocked(t *testing.T, server *objectstoretest.Server, bucket string) Location {
	t.Helper()
	for name, value := range server.Environment("") {
		t.Setenv(name, value)
	}
	keys, err := ParsePassphrases("correct horse\n")
	if err != nil {
		t.Fatal(err)
	}
	at := Location{URL: "s3://" + bucket + "/home", Keys: keys}
	if _, err := Initialize(t.Context(), at, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	return at
}

// TestPruneOfLockedPoints: of the points that are older than the retention, those that are locked remain with what they need, and the
// others go.
func TestPruneOfLockedPoints(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			at := initializeLocked(t, server, server.Bucket(t, true))
			const day = 24 * time.Hour
			for _, content := range []string{"first", "base of the second"} {
				at.open(t).copyWith(t, content, stream.Options{Interval: time.Millisecond})
			}
			before := time.Now()
			for _, content := range []string{"second", "third"} {
				at.open(t).copyWith(t, content, stream.Options{Interval: time.Millisecond, Lock: objectstore.Governance, Retention: 30 * day})
			}
			p, err := PlanPrune(t.Context(), at, time.Now().Add(20*day), 19*day)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			done, err := p.Run(t.Context())
			if err != nil || done.Points != 1 || done.Objects < 4 || done.Locked != 0 || done.LockedSince == nil || !between(*done.LockedSince, before, time.Now()) {
				t.Errorf("%+v since %v, %v", done, done.LockedSince, err)
			}
			if v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1}); err != nil || v.Err() != nil || v.Points != 3 {
				t.Errorf("afterwards: %+v, %v", v, err)
			}
		})
	}
}

// between reports whether a moment is between two others.
func between(at, from, to time.Time) bool { return at.After(from) && at.Before(to) }

// TestPruneDuringARecovery: what a recovery of an earlier moment still has to fetch remains.
func TestPruneDuringARecovery(t *testing.T) {
	t.Parallel()
	at, dir := preparedDirectory(t)
	for _, content := range []string{"first ", "second "} {
		at.open(t).copyOnce(t, content)
	}
	points, err := List(t.Context(), at)
	if err != nil || len(points.Points) != 2 {
		t.Fatalf("%+v, %v", points, err)
	}
	then := time.Now().Add(-100 * 24 * time.Hour)
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = os.Chtimes(path, then, then)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	o := RecoverOptions{Location: at, DataDir: t.TempDir(), At: points.Points[1], TakeOver: true, Progress: func(Progress) {}}
	if _, err := newPlan(o.DataDir, recoveryPlan{Format: recoveryFormat, Repository: points.Repository, Step: stepClaim, At: &o.At}); err != nil {
		t.Fatal(err)
	}
	// It ends before the first point: the copy has no metadata.
	if _, err := Recover(t.Context(), o); err == nil {
		t.Fatal("a recovery without metadata is complete")
	}
	p, err := PlanPrune(t.Context(), at, time.Now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if planned := p.Plan(); planned.Points != 0 {
		t.Errorf("removed would be %+v", planned)
	}
}
