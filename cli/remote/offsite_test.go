package remote

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/server/api/wire"
)

// TestRecoveredFields: what a recovery does not bring back by itself does not seem to be under way.
func TestRecoveredFields(t *testing.T) {
	t.Parallel()
	fields := recoveredFields(wire.RecoveredAppliance{Databases: []wire.RecoveredDatabase{
		{Database: "shop"},
		{Database: "wiki", Left: true},
		{Database: "old", InTrash: true},
		{Database: "lost", InTrash: true, Left: true},
		{Database: "back", Done: true, InTrash: true},
	}})
	for name, want := range map[string]string{
		"shop": "to follow", "wiki": "left in the copy (--only)", "old": "in the trash", "lost": "left in the copy (--only)", "back": "back",
	} {
		if i := slices.Index(fields, "database "+name); i < 0 || fields[i+1] != want {
			t.Errorf("%s: %v", name, fields)
		}
	}
}

// TestRecoveredWithout: a recovery that could not bring back a database is not shown as complete.
func TestRecoveredWithout(t *testing.T) {
	t.Parallel()
	ended, problem := time.Now(), "its files are damaged"
	for _, c := range []struct {
		database wire.RecoveredDatabase
		complete bool
	}{
		{wire.RecoveredDatabase{Database: "shop", Problem: &problem}, false},
		{wire.RecoveredDatabase{Database: "shop", Problem: &problem, InTrash: true}, true},
		{wire.RecoveredDatabase{Database: "shop", Done: true}, true},
	} {
		fields := recoveredFields(wire.RecoveredAppliance{EndedAt: &ended, Databases: []wire.RecoveredDatabase{c.database}})
		i := slices.Index(fields, "complete")
		if complete := !strings.HasPrefix(fields[i+1], "no: "); complete != c.complete {
			t.Errorf("%+v: complete %q", c.database, fields[i+1])
		}
	}
}
