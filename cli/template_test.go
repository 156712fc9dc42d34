package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/internal/testenv"
)

// preparedTemplate is a template of data directories, made once for all tests by an appliance of its own. Machines begin
// with hard links to its files, so that they run no initdb: an appliance reads its template and never writes to it.
type preparedTemplate struct {
	once sync.Once
	path string // "" if it could not be made
}

var theTemplate preparedTemplate

// link gives a machine that has not been started yet a data directory with the template in it, as an appliance leaves it.
// One on a disk of its own gets none.
func (p *preparedTemplate) link(m *machine) {
	m.t.Helper()
	if _, err := os.Lstat(m.dataDir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	p.once.Do(func() { p.path = makeTemplate(m.t) })
	if p.path == "" { // which failed the test that was the first
		return
	}
	if stat(m.t, filepath.Dir(m.dataDir)).Dev != stat(m.t, p.path).Dev {
		return
	}
	pool := filepath.Join(m.dataDir, "warm")
	if err := os.MkdirAll(pool, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-al", p.path, pool).CombinedOutput(); err != nil {
		m.t.Fatalf("link the template: %v: %s", err, out)
	}
	owner := stat(m.t, p.path)
	for _, dir := range []string{m.dataDir, pool} {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			m.t.Fatal(err)
		}
	}
}

func stat(t testing.TB, path string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t)
}

// makeTemplate starts an appliance that makes a template, and returns the template's path.
func makeTemplate(t testing.TB) string {
	t.Helper()
	m := newMachine(t)
	m.warm, m.initdb = "1", true
	m.start()
	pool, name := filepath.Join(m.dataDir, "warm"), ""
	testenv.Eventually(t, "a template", func() bool {
		for _, name = range names(pool) {
			if strings.HasPrefix(name, "template-") && !strings.HasSuffix(name, ".building") {
				return true
			}
		}
		return false
	})
	m.stop()
	path := filepath.Join(filepath.Dir(program), name)
	if err := os.Rename(filepath.Join(pool, name), path); err != nil {
		t.Fatal(err)
	}
	return path
}
