package imports

import (
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// An import is refused if the running imports will fill the disk.
func TestImportBesideALargeOne(t *testing.T) {
	t.Parallel()
	c := &core.Core{Config: core.Config{DataDir: t.TempDir()}}
	c.Space.MeasureWith(func() (int64, error) { return 1 << 40, nil })
	s := New(c, databases.New(c))
	s.sizes.Store("db_of_a_large_import", int64(1<<50))
	err := s.admit(model.Database{ID: "db_next"}, 1<<20)
	if model.CodeOf(err) != model.CodeForbidden || !strings.Contains(err.Error(), "no other operation needs") {
		t.Errorf("the next import: %v", err)
	}
	s.sizes.Delete("db_of_a_large_import")
	if still := s.StillToImport(); still != 0 {
		t.Errorf("%d bytes are still to come", still)
	}
}
