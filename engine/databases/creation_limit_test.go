package databases

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCreationLimits: a server is asked when its databases may have changed, by one question at a time; one that does not
// answer holds up no other.
func TestCreationLimits(t *testing.T) {
	t.Parallel()
	creating := map[string]string{}
	for _, id := range []string{"answers", "hangs", "fails"} {
		creating[id] = t.TempDir()
	}
	create := func(id, database string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(creating[id], "base", database), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for id := range creating {
		create(id, "1")
	}
	limits := creationLimits{set: map[string]int{}, asked: map[string]bool{}}
	want := func(ids ...string) {
		t.Helper()
		if due := slices.Sorted(maps.Keys(limits.due(creating))); !slices.Equal(due, ids) {
			t.Errorf("%v are due, not %v", due, ids)
		}
	}
	want("answers", "fails", "hangs")
	limits.end("answers", 1, nil)
	limits.end("fails", 1, errors.New("no answer"))
	want("fails")
	create("answers", "2")
	create("hangs", "2")
	want("answers")
	limits.end("answers", 2, nil)
	limits.end("hangs", 1, nil) // of before its second database
	want("hangs")
	delete(creating, "answers")
	want()
	if _, kept := limits.set["answers"]; kept {
		t.Error("a server that has ended is remembered")
	}
}
