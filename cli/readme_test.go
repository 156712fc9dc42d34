package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/cli"
)

// TestReadme types the README's terminal examples, then pastes its tour into a
// shell twice: the second time a name is taken, and nothing is lost.
func TestReadme(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "psql")
	m := newMachine(t)
	m.start()
	typeAll(t, m, readme)
	out, err := paste(t, m, "-e", "-o", "pipefail")
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{"DROP TABLE", "1000", "5005000", "hello, world"} {
		if !strings.Contains(out, want) {
			t.Errorf("the tour did not show %q:\n%s", want, out)
		}
	}
	var buckets []struct{ ID, Name string }
	m.must("GET", "/buckets", nil, &buckets)
	var object struct {
		ContentType string `json:"content_type"`
	}
	m.must("GET", "/buckets/"+buckets[0].ID+"/objects/notes/hello.txt", nil, &object)
	if buckets[0].Name != "tour" || object.ContentType != "text/plain" {
		t.Errorf("bucket %s has %+v", buckets[0].Name, object)
	}
	out, _ = paste(t, m, "--norc", "-i") // continues after errors, as a terminal does
	if !strings.Contains(out, "was not made") || strings.Contains(out, "DROP TABLE") || strings.Contains(out, "psql:") {
		t.Errorf("the tour went on without a database:\n%s", out)
	}
}

// paste gives the README's tour to a shell.
func paste(t *testing.T, m *machine, options ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", options...)
	shell.Stdin = strings.NewReader(strings.ReplaceAll(tour(t), "http://127.0.0.1:8432/v1", m.api))
	shell.Env = append(os.Environ(), "KEY="+m.key)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a controlling terminal
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	out, err := shell.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("the tour does not end:\n%s", out)
	}
	return string(out), err
}

// needs skips a test if a tool is missing; in CI it fails the test.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("the tour needs %s: %v", tool, err)
			}
			t.Skipf("the tour needs %s", tool)
		}
	}
}

// TestDocuments types the terminal examples of each document, and compares the
// output, except for ids, secrets, numbers and column widths.
func TestDocuments(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "psql")
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents, %v", err)
	}
	untyped := []string{
		"macos.md",   // the commands of a Mac
		"testing.md", // see TestExamplesOfTestSuites
		"instant.md", // has figures, and no commands of the program
	}
	for _, document := range documents {
		if slices.Contains(untyped, filepath.Base(document)) {
			continue
		}
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.start("--s3-listen", "127.0.0.1:0")
			typeAll(t, m, document)
		})
	}
}

func typeAll(t *testing.T, m *machine, document string) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "key.txt"), []byte(m.key), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks(t, document, "console") {
		for _, step := range strings.Split(strings.TrimPrefix(block, "$ "), "\n$ ") {
			command, want, _ := strings.Cut(step, "\n")
			shell := exec.Command("bash", "-c", command)
			shell.Dir = home
			shell.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "HOLDFAST_URL="+m.api, "DATA="+m.dataDir,
				"PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := shell.CombinedOutput()
			if err != nil || alike(string(out)) != alike(want) {
				t.Fatalf("$ %s\n%s%v, and %s has\n%s", command, out, err, document, want)
			}
		}
	}
}

// TestDocumentedCommands parses every command in the documents, including those
// that no test runs: the command, its flags and its number of arguments must
// exist.
func TestDocumentedCommands(t *testing.T) {
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range append(documents, readme, "../SECURITY.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```") {
			for line := range strings.Lines(block) {
				command, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "holdfast ")
				if !ok || i%2 == 0 || strings.HasPrefix(command, "(") { // prose, and the output of `serve`
					continue
				}
				for _, one := range alternatives(command) {
					if err := parses(one); err != nil {
						t.Errorf("%s shows `holdfast %s`: %v", document, one, err)
					}
				}
			}
		}
	}
}

var (
	// Shell syntax, and brackets around optional parts.
	notArguments = regexp.MustCompile(` (?:<|>|2>|\||&&|\|\|) .*$|[\[\]]`)
	alternation  = regexp.MustCompile(`[a-z-]+(\|[a-z-]+)+`)
	quoted       = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// alternatives expands "list|create" to its commands.
func alternatives(command string) (all []string) {
	command = notArguments.ReplaceAllString(quoted.ReplaceAllString(command, "quoted"), "")
	of := alternation.FindString(command)
	if of == "" {
		return []string{command}
	}
	for _, one := range strings.Split(of, "|") {
		all = append(all, strings.Replace(command, of, one, 1))
	}
	return all
}

func parses(command string) error {
	root := cli.NewRoot()
	cmd, rest, err := root.Find(strings.Fields(command))
	if err == nil && !cmd.Runnable() {
		err = fmt.Errorf("%q is no command", cmd.CommandPath())
	}
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	return err
}

// alike removes what differs between runs.
func alike(output string) string {
	for _, r := range []struct{ form, to string }{
		{`\b[a-z]+_[0-9a-z]{26}\b`, "ID"},
		{`[\w-]{43}`, "SECRET"},
		{`\d+(\.\d+)*`, "0"},
		{`[ \t]+`, " "},
		{`(?m) $`, ""},
	} {
		output = regexp.MustCompile(r.form).ReplaceAllString(output, r.to)
	}
	return strings.TrimSpace(output)
}

// tour returns the longest block of shell commands in the README.
func tour(t *testing.T) string {
	t.Helper()
	longest := ""
	for _, block := range blocks(t, readme, "sh") {
		if len(block) > len(longest) {
			longest = block
		}
	}
	return longest
}

const readme = "../README.md"

// blocks returns a document's code blocks in a language.
func blocks(t *testing.T, document, language string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i, block := range strings.Split(string(text), "```") {
		if code, ok := strings.CutPrefix(block, language+"\n"); ok && i%2 == 1 {
			found = append(found, code)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no code in %s", document, language)
	}
	return found
}
