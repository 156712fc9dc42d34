package api

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDescriptionIsValid(t *testing.T) {
	w := open(t)
	doc := w.doc
	if err := doc.Validate(t.Context()); err != nil {
		t.Errorf("the document is not valid: %v", err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.0.0" {
		t.Errorf("openapi %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
}

// TestDescriptionForTools runs a public linter on both forms of the description, which finds nothing. Generators are
// tested in cli, which has a whole appliance for the generated clients.
func TestDescriptionForTools(t *testing.T) {
	linter, err := filepath.Abs("testdata/node_modules/@redocly/cli/bin/cli.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(linter); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the tools are not there: npm install --prefix server/api/testdata, as .ci/run does")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "redocly.yaml"), []byte("extends: [recommended]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, doc := range descriptions(t, open(t)) {
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	cmd := osexec.CommandContext(t.Context(), "node", append([]string{linter, "lint", "--max-problems", "1000"}, names...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "Warning was generated") {
		t.Errorf("%v\n%s", err, out)
	}
}
