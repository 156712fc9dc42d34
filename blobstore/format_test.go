package blobstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"newer":    {formatLine(formatVersion + 1), "use a newer holdfast"},
		"damaged":  {strings.Replace(formatLine(1), "1 ", "1 f", 1), "damaged"},
		"cut":      {formatLine(1)[:22], "damaged"},
		"no store": {"hello\n", "not a blob store"},
		"empty":    {"", "not a blob store"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			openStore(t, dir, Options{}).Close()
			path := filepath.Join(dir, formatFile)
			if err := os.WriteFile(path, []byte(test.line), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v, want %q", err, test.want)
			}
			if got, _ := os.ReadFile(path); string(got) != test.line {
				t.Error("a refused Open changed the format file")
			}
		})
	}
}

// TestFormatLine pins format 1: existing stores have this line.
func TestFormatLine(t *testing.T) {
	if got, want := formatLine(1), "holdfast blobstore 1 c361209c\n"; got != want {
		t.Errorf("format 1 is %q, want %q", got, want)
	}
}
