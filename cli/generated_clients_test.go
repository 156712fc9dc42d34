package cli_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/testenv"
)

// The generator of Go clients, and the version of its runtime. The product
// needs neither: they are not part of its module.
const (
	oapiCodegen  = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	clientModule = `module generated

go 1.26.0

require github.com/oapi-codegen/runtime v1.8.0
`
)

// generator generates a client from the OpenAPI document; the client makes a
// backup.
type generator struct {
	name string
	// part is a required directory, below the repository's root.
	part string
	// program is the program that uses the generated client.
	program string
	// commands run in a directory with the OpenAPI document and the program.
	// The last one gets the URL and the key.
	commands func(root string) [][]string
}

func generators() []generator {
	const installed = "cli/testdata/generators/installed"
	return []generator{
		{
			name: "go", program: "client.go",
			commands: func(string) [][]string {
				return [][]string{
					{"go", "run", oapiCodegen, "-generate", "types,client", "-package", "api", "-o", "api/api.go", "openapi.json"},
					{"go", "run", oapiCodegen, "-generate", "types,client", "-package", "api30", "-o", "api30/api.go", "openapi-3.0.json"},
					{"go", "vet", "-mod=mod", "./..."},
					{"go", "run", "-mod=mod", "."},
				}
			},
		},
		{
			name: "python", part: installed + "/python/bin/python", program: "client.py",
			commands: func(root string) [][]string {
				python := filepath.Join(root, installed, "python/bin/python")
				generate := func(document, output string) []string {
					return []string{
						python, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--config", filepath.Join(root, "cli/testdata/generators/python.json"),
						"--meta", "none", "--path", document, "--output-path", output,
					}
				}
				return [][]string{
					{python, "-m", "openapi_spec_validator", "openapi.json", "openapi-3.0.json"},
					generate("openapi.json", "api"), generate("openapi-3.0.json", "api30"),
					// The generated common code has errors of its own.
					{python, "-m", "mypy", "--strict", "--follow-imports=silent", "client.py", "api/models", "api/api", "api30/models", "api30/api"},
					{python, "client.py"},
				}
			},
		},
		{
			name: "typescript", part: "server/api/testdata/node_modules/openapi-typescript", program: "client.mts",
			commands: func(string) [][]string {
				return [][]string{
					{"node", "node_modules/openapi-typescript/bin/cli.js", "openapi-3.0.json", "-o", "api30.d.ts"},
					{"node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts"},
					{
						"node", "node_modules/typescript/bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom",
						"--allowImportingTsExtensions", "--rewriteRelativeImportExtensions", "--outDir", ".", "client.mts",
					},
					{"node", "client.mjs"},
				}
			},
		},
	}
}

// TestGeneratedClients generates a client in each language from the OpenAPI
// document of a running appliance, and makes a backup with it.
func TestGeneratedClients(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.start("--no-exports")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range generators() {
		t.Run(g.name, func(t *testing.T) {
			g.require(t, root)
			dir := g.prepare(t, root, m.api)
			commands := g.commands(root)
			last := len(commands) - 1
			commands[last] = append(commands[last], m.api, m.key, m.project(), "from-"+g.name)
			for _, command := range commands {
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "NO_COLOR=1")
				if filepath.IsAbs(command[0]) { // it finds other programs in its directory
					cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(command[0])+string(os.PathListSeparator)+os.Getenv("PATH"))
				}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
				}
			}
		})
	}
}

// require skips the test if a generator is missing. In CI, HOLDFAST_GENERATORS
// names those that .ci/run has installed.
func (g generator) require(t *testing.T, root string) {
	t.Helper()
	var err error
	if g.part != "" {
		_, err = os.Stat(filepath.Join(root, g.part))
	} else {
		err = exec.Command("go", "run", oapiCodegen, "-version").Run()
	}
	switch {
	case err == nil:
	case slices.Contains(strings.Fields(os.Getenv("HOLDFAST_GENERATORS")), g.name):
		t.Fatal(err)
	default:
		t.Skipf("the generator is not there; .ci/run gets it: %v", err)
	}
}

// prepare creates a directory with the OpenAPI document, the program and its
// dependencies.
func (g generator) prepare(t *testing.T, root, api string) string {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile(filepath.Join(root, "cli/testdata/generators", g.program))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{g.program: program, "go.mod": []byte(clientModule)}
	for _, name := range []string{"openapi.json", "openapi-3.0.json"} {
		files[name] = fetchText(t, api+"/"+name)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []string{"api", "api30"} {
		if g.name == "go" { // oapi-codegen creates no directories
			if err := os.Mkdir(filepath.Join(dir, made), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(filepath.Join(root, "server/api/testdata/node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func fetchText(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, res.StatusCode, err)
	}
	return text
}
