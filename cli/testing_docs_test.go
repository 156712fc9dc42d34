package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fenced returns the first block of code of that language in a document.
func fenced(t *testing.T, document, language string) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, ended := strings.Cut(rest, "\n```")
	if !found || !ended {
		t.Fatalf("%s has no block of %s", document, language)
	}
	return code + "\n"
}

// TestExamplesOfTestSuites runs the examples of docs/testing.md, each in two processes that share a template.
func TestExamplesOfTestSuites(t *testing.T) {
	t.Parallel()
	cache, _ := privateCache(t)
	for _, c := range []struct {
		language string
		needs    []string // programs, psql among them
		files    map[string]string
		command  string
	}{
		{"python", []string{"pytest", "psql"}, map[string]string{
			"conftest.py": fenced(t, "../docs/testing.md", "python"),
			"test_orders.py": `
import os, subprocess
def query(environment, sql):
    return subprocess.run(["psql", "-qtAX", "-c", sql], env=os.environ | environment, capture_output=True, text=True, check=True).stdout.strip()
def test_insert(database):
    query(database, "insert into orders values (1)")
    assert query(database, "select count(*) from orders") == "1"
def test_empty(database):
    assert query(database, "select count(*) from orders") == "0"
`,
		}, "(pytest -q -p no:cacheprovider & pytest -q -p no:cacheprovider && wait $!)"},
		{"js", []string{"node", "psql"}, map[string]string{
			"sandbox.mjs": fenced(t, "../docs/testing.md", "js"),
			"orders.test.mjs": `
import test from 'node:test'
import assert from 'node:assert'
import { execFileSync } from 'node:child_process'
import { template, database } from './sandbox.mjs'
const query = (environment, sql) => execFileSync('psql', ['-qtAX', '-c', sql], { env: { ...process.env, ...environment } }).toString().trim()
const hash = await template('orders-1', environment => query(environment, 'create table orders (n int)'))
for (const n of [1, 2]) test('insert ' + n, async t => {
  const environment = await database(t, hash)
  query(environment, 'insert into orders values (1)')
  assert.equal(query(environment, 'select count(*) from orders'), '1')
})
`,
		}, "(node --test & node --test && wait $!)"},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			for _, program := range c.needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("NOT TESTED: the example, because there is no %s", program)
				}
			}
			dir := t.TempDir()
			c.files["schema.sql"] = "create table orders (n int);\n"
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(program, "run", "--private", "--", "sh", "-c", c.command)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestSandboxCommand starts a private appliance and finds it again.
func TestSandboxCommand(t *testing.T) {
	t.Parallel()
	cache, _ := privateCache(t)
	sandbox := func() string {
		cmd := exec.Command(program, "sandbox", "--private")
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	first := sandbox()
	if info, err := os.Stat(first); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("%q is no socket: %v", first, err)
	}
	if again := sandbox(); again != first {
		t.Errorf("another socket: %s, %s", first, again)
	}
}
