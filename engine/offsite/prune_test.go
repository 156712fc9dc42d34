package offsite

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
)

// TestPruneOfLockedPoints prunes to a shorter retention than that for which the store locks: it removes nothing, and says what is wrong.
func TestPruneOfLockedPoints(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			for name, value := range server.Environment("") {
				t.Setenv(name, value)
			}
			keys, err := ParsePassphrases("correct horse\n")
			if err != nil {
				t.Fatal(err)
			}
			at := Location{URL: "s3://" + server.Bucket(t, true) + "/home", Keys: keys}
			if _, err := Initialize(t.Context(), at, nil, time.Now()); err != nil {
				t.Fatal(err)
			}
			const day = 24 * time.Hour
			for _, content := range []string{"first", "second"} {
				at.open(t).copyWith(t, content, stream.Options{Interval: time.Millisecond, Lock: objectstore.Governance, Retention: 30 * day})
			}
			p, err := PlanPrune(t.Context(), at, time.Now().Add(20*day), 19*day)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if plan := p.Plan(); plan.Points != 1 {
				t.Fatalf("%+v", plan)
			}
			if _, err := p.Run(t.Context()); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "--retention at least as long as the --offsite-retention") {
				t.Errorf("prune: %v", err)
			}
			if v, err := Verify(t.Context(), at, time.Now(), VerifyOptions{Share: 1}); err != nil || v.Err() != nil || v.Points != 2 {
				t.Errorf("afterwards: %+v, %v", v, err)
			}
		})
	}
}
