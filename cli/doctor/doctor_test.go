package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/postgres/binaries"
)

// TestClientToolsOfWhatIsFetched checks that a pg_dump older than the
// PostgreSQL to be fetched is not accepted.
func TestClientToolsOfWhatIsFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tool := range []string{"pg_dump", "psql"} {
		if err := os.WriteFile(filepath.Join(dir, tool), []byte("#!/bin/sh\necho '"+tool+" (PostgreSQL) 15.3'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found := checkClientTools(t.Context(), Options{Search: binaries.Search{Installed: func() []string { return []string{dir} }}})
	if len(found) != 2 || found[0].Check != "pg_dump" || found[0].Level != Warning || !strings.Contains(found[0].Remedy, "postgresql-client-18") {
		t.Errorf("pg_dump 15 beside a server that is fetched: %+v", found)
	} else if found[1].Check != "psql" || found[1].Level != OK {
		t.Errorf("any psql does: %+v", found[1])
	}
}

// TestDiskNearlyFull checks that doctor warns of a disk that serve would call
// nearly full.
func TestDiskNearlyFull(t *testing.T) {
	t.Parallel()
	found := checkDisk(t.Context(), Options{DataDir: t.TempDir(), DiskFree: 1.5})
	if len(found) != 1 || found[0].Level == OK || !strings.Contains(found[0].Detail, "iB free of") {
		t.Errorf("with less free than asked for: %+v", found)
	}
}
