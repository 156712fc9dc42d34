package api

import (
	"errors"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
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

// TestDescriptionForTools gives the description to tools that others use: a
// linter finds nothing, and a generator makes a client of it that compiles and
// works.
func TestDescriptionForTools(t *testing.T) {
	tools, err := filepath.Abs("testdata/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tools, "openapi-typescript")); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the tools are not there: npm install --prefix server/api/testdata, as .ci/run does")
	}
	w := open(t)
	dir := t.TempDir()
	program, err := os.ReadFile("testdata/generated-client.mts")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"openapi.json": w.doc.Text, "client.mts": program, "redocly.yaml": []byte("extends: [recommended]\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(tools, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"@redocly/cli/bin/cli.js", "lint", "--max-problems", "1000", "openapi.json"},
		{"openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts"},
		{
			"typescript/bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom",
			"--allowImportingTsExtensions", "--rewriteRelativeImportExtensions", "--outDir", ".", "client.mts",
		},
		{"", "client.mjs", w.server.URL + Prefix, w.org.full, w.org.project},
	} {
		if command[0] == "" {
			command = command[1:]
		} else {
			command[0] = filepath.Join("node_modules", command[0])
		}
		cmd := osexec.CommandContext(t.Context(), "node", command...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}
