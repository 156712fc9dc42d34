package remote

import (
	"slices"
	"testing"

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
