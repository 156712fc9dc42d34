package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStartOnFullXFS: after a power cut the appliance starts on a full disk of a file system that then makes no file at
// all. Once the reserved space is used up, too, the refusal names the command that frees space, which works.
func TestStartOnFullXFS(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.warm = "0"
	fill, _ := m.smallXFS("400")
	m.start()
	shop, old := m.createDatabase("shop"), m.createDatabase("old")
	query(t, m.connectionURL(shop.ID), "create table kept as select 7 n")
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	m.must("DELETE", "/databases/"+old.ID, nil, nil)
	// The appliance writes this a minute after its start.
	if err := os.WriteFile(filepath.Join(m.dataDir, "reserve"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	cutPower := func() {
		t.Helper()
		fill()
		m.killAll()
		fill()
	}
	cutPower()
	m.start()
	m.awaitAvailable(shop.ID)
	if got := query(t, m.connectionURL(shop.ID), "select n from kept"); got != "7" {
		t.Errorf("the database has %s", got)
	}

	cutPower()
	_, says, code := m.run("", "serve", "--listen", m.listen, "--postgres-ports", m.ports, "--warm", "0")
	if code == 0 || !strings.Contains(says, "no space left on device") || !strings.Contains(says, "admin trash empty --data-dir "+m.dataDir) {
		t.Errorf("without space: exit code %d, %s", code, says)
	}
	m.mustRun("admin", "trash", "empty", "--yes")
	m.start()
	m.awaitAvailable(shop.ID)
	if got := query(t, m.connectionURL(shop.ID), "select n from kept"); got != "7" {
		t.Errorf("afterwards the database has %s", got)
	}
}

// smallXFS is smallDisk with XFS.
func (m *machine) smallXFS(megabytes string) (fill, empty func()) {
	m.t.Helper()
	if _, err := exec.LookPath("mkfs.xfs"); err != nil || os.Geteuid() != 0 {
		m.t.Skip("this test needs root and mkfs.xfs")
	}
	disk := filepath.Join(filepath.Dir(m.dataDir), "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		m.t.Fatal(err)
	}
	image := disk + ".img"
	for _, args := range [][]string{{"truncate", "-s", megabytes + "M", image}, {"mkfs.xfs", "-q", image}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			m.t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		m.t.Skipf("a file system cannot be mounted here: %v %s", err, out)
	}
	m.t.Cleanup(func() {
		m.stop()
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			m.t.Error(err)
		}
	})
	return m.onDisk(disk)
}
