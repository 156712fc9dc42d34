package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tree is what the documents may name.
type tree struct {
	files strings.Builder // a slash and the path, a line each
	tests strings.Builder // the text of all tests
}

// TestDocumentsNameWhatIsThere checks that the files, the tests and the links
// that the documents for developers name are there.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	var there tree
	documents := []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"}
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path = filepath.ToSlash(path)
		there.files.WriteString("/" + path + "\n")
		if strings.HasSuffix(path, "/DESIGN.md") || strings.HasPrefix(path, "docs/decisions/") {
			documents = append(documents, path)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		there.tests.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		there.check(t, document)
	}
}

func (there *tree) check(t *testing.T, document string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(there.tests.String(), "func "+name[1]+"(") {
			t.Errorf("%s: there is no test %s", document, name[1])
		}
	}
	for _, file := range regexp.MustCompile("`([a-z/_]+\\.(?:go|md))`").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(there.files.String(), "/"+file[1]+"\n") {
			t.Errorf("%s: there is no file %s", document, file[1])
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^):#]+)[^):]*\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}
