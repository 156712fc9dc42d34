package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPrivateEnviron: the private appliance gets no variables that are the command's alone, and the mirror not as an argument.
func TestPrivateEnviron(t *testing.T) {
	t.Parallel()
	got := privateEnviron([]string{
		"PATH=/bin", "MY_TOKEN=secret", "HOLDFAST_IMPORT=postgres://app:secret@db/shop", "PGPASSWORD=secret", "LC_ALL=C", "https_proxy=http://proxy:3128",
	}, "https://me:secret@mirror")
	want := []string{"PATH=/bin", "LC_ALL=C", "https_proxy=http://proxy:3128", "HOLDFAST_POSTGRES_MIRROR=https://me:secret@mirror"}
	if !slices.Equal(got, want) {
		t.Errorf("it gets %q, want %q", got, want)
	}
}

// TestWithoutInherited: a file that this process inherited is not passed on, and is again afterwards.
func TestWithoutInherited(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "job.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD, 100) // without FD_CLOEXEC, as what was inherited
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	has := func(start func(*exec.Cmd) error) bool {
		t.Helper()
		cmd := exec.Command("sh", "-c", fmt.Sprintf("test -e /dev/fd/%d", fd))
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		return cmd.Wait() == nil
	}
	without := func(cmd *exec.Cmd) error { return withoutInherited(cmd.Start) }
	if has(without) || !has((*exec.Cmd).Start) {
		t.Error("it was passed on, or is lost")
	}
}

// TestIsReplaced: an appliance notices that its data directory was removed, and made again by another.
func TestIsReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	made := func() error { return os.Mkdir(dir, 0o700) }
	if err := made(); err != nil {
		t.Fatal(err)
	}
	replaced := isReplaced(dir)
	if replaced() {
		t.Error("its own directory is another one")
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	gone := replaced()
	if err := made(); err != nil {
		t.Fatal(err)
	}
	if !gone || !replaced() {
		t.Error("it does not notice")
	}
}
