package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// powerCutNeeded, when set, makes TestPowerCut fail where it cannot run.
const powerCutNeeded = "HOLDFAST_POWERCUT"

// TestPowerCut keeps the data on an ext4 image whose disk is a file on XFS. A reflink copy of that file, made under
// load, is what a power cut would leave: every write that reached the disk up to that moment, and nothing else. It
// must contain everything acknowledged before.
func TestPowerCut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the file systems this test needs")
	}
	base := t.TempDir()
	outer, data := filepath.Join(base, "outer"), filepath.Join(base, "data")
	if err := mountImage(t, filepath.Join(base, "xfs.img"), outer, 1<<30, "mkfs.xfs", "-q", "-m", "reflink=1"); err != nil {
		if os.Getenv(powerCutNeeded) != "" {
			t.Fatal(err)
		}
		t.Skipf("an XFS image cannot be made and mounted here: %v", err)
	}
	disk := filepath.Join(outer, "disk.img")
	if err := mountImage(t, disk, data, 200<<20, "mkfs.ext4", "-q"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(data, "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h := startHoldfast(t, dir, nil)
	load := &uploader{acknowledged: map[string]bool{}}
	load.start(h, 8, "k")
	var cuts []string
	var known [][]string
	for i := range 3 {
		for before := len(load.known()); len(load.known()) < before+100; {
			time.Sleep(5 * time.Millisecond)
			if load.stopped.Load() {
				break
			}
		}
		known = append(known, load.known())
		cuts = append(cuts, filepath.Join(outer, fmt.Sprintf("cut-%d.img", i)))
		if err := reflink(disk, cuts[i]); err != nil {
			t.Fatal(err)
		}
	}
	load.stopped.Store(true)
	load.done.Wait()
	h.stop()
	for i, cut := range cuts {
		left := filepath.Join(base, fmt.Sprint("left", i))
		if err := mountImage(t, cut, left, 0); err != nil {
			t.Fatal(err)
		}
		again := startHoldfast(t, filepath.Join(left, "d"), h)
		again.mustServe(t, known[i])
		t.Logf("cut %d: %d acknowledged", i, len(known[i]))
		again.stop()
	}
}

// mountImage creates a file system of size bytes in a file, unless it exists, and mounts it.
func mountImage(t *testing.T, image, at string, size int64, mkfs ...string) error {
	t.Helper()
	if len(mkfs) > 0 {
		f, err := os.Create(image)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			return err
		}
		if out, err := exec.Command(mkfs[0], append(mkfs[1:], image)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w %s", mkfs[0], err, out)
		}
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	// Images that are copies of each other have one UUID, which only XFS rejects.
	if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return nil
}

func reflink(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())); err != nil {
		return errors.Join(fmt.Errorf("reflink: %w", err), dst.Close())
	}
	return dst.Close()
}
