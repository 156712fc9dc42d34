package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesWhatIsThere: SECURITY.md leans on tests and files, and they
// are there.
func TestSecurityNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests, names strings.Builder
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		names.WriteString("/" + filepath.ToSlash(path) + "\n")
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(document), -1)
	if len(named) < 20 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, name := range named {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("there is no test %s", name[1])
		}
	}
	for _, file := range regexp.MustCompile("`([a-z/_]+\\.(?:go|md))`").FindAllStringSubmatch(string(document), -1) {
		if !strings.Contains(names.String(), "/"+file[1]+"\n") {
			t.Errorf("there is no file %s", file[1])
		}
	}
}
