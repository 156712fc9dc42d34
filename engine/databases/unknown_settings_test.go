package databases

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/engine/postgres/binaries"
)

// A name that is not in the server's program is unknown. A file that is not such a program, as a script that starts it, tells
// nothing of the names.
func TestSettingsOfAProgram(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		program string
		known   map[string]bool
	}{
		"a program": {
			"\x7fELF\x00work_mem\x00IntervalStyle\x00transaction_timeout_s\x00",
			map[string]bool{"work_mem": true, "intervalstyle": true, "transaction_timeout": false, "x.y": true},
		},
		"a script": {
			"#!/bin/sh\nexec /opt/postgresql/bin/postgres \"$@\"\n",
			map[string]bool{"work_mem": true, "transaction_timeout": true, "x.y": true},
		},
	} {
		bin := binaries.Set{Dir: t.TempDir(), Version: "17.1"}
		if err := os.WriteFile(filepath.Join(bin.Dir, "postgres"), []byte(c.program), 0o600); err != nil {
			t.Fatal(err)
		}
		var names settingNames
		for name, want := range c.known {
			if got := names.known(bin, name); got != want {
				t.Errorf("%s knows %s: %v", what, name, got)
			}
		}
	}
}
