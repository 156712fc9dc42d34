package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogin logs the command line in, with a user on the approval page.
func TestLogin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	b := m.browse(t)
	b.setUp(m)
	environment := append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "BROWSER="+opener(t))
	login := exec.Command(program, "login", "--url", m.api, "--name", "my laptop", "--preset", "full_access")
	login.Env = environment
	var out lockedBuffer
	login.Stdout = &out
	said, err := login.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	var code, page string
	for lines := bufio.NewScanner(said); page == "" && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "Your code: "); ok {
			code = strings.TrimSpace(text)
		}
		page, _ = strings.CutPrefix(lines.Text(), "Approve it at ")
		if !strings.HasPrefix(page, "http") {
			page = ""
		}
	}
	b.open(page)
	b.see("my laptop")
	b.see(code)
	b.press("Approve")
	b.see("my laptop is let in")
	if err := login.Wait(); err != nil || !strings.Contains(out.String(), "as default, kept as profile default") {
		t.Fatalf("login: %v, %s", err, out.String())
	}
	whoami := exec.Command(program, "whoami")
	whoami.Env = environment
	text, err := whoami.Output()
	if err != nil || !strings.Contains(string(text), "database:delete") || !strings.Contains(string(text), "profile default") {
		t.Errorf("whoami: %v, %s", err, text)
	}
}

// opener replaces the user's browser, and opens nothing.
func opener(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "opener")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
