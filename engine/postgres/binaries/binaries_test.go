package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PostgreSQL's environment is built, not inherited.
func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("PGDATA", "/somewhere")
	t.Setenv("LD_PRELOAD", "")
	dir := t.TempDir()
	script := "#!/bin/sh\n/usr/bin/env\n/bin/pwd\n"
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := Set{Dir: dir}.run(t.Context(), "tool")
	if err != nil || strings.Contains(out, "PGDATA") || !strings.Contains(out, "LC_ALL=C") || !strings.HasSuffix(out, "\n/\n") {
		t.Errorf("%s, %v", out, err)
	}
}
