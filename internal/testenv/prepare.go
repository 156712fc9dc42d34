package testenv

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Prepare is for the TestMain of packages whose tests start servers, before anything makes a temporary directory. It
// runs twice as many tests at a time as there are processors, unless -parallel is set: they mostly wait. Unless TMPDIR
// is set, their data directories are in memory where it has room: they take half the time there. What tests of power
// cuts and benchmarks are about is what a disk does: those bring images of their own, and these stay on the disk.
func Prepare() error {
	// The flags are parsed later, by which time their files may have other names (postgrestest).
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil {
		return fmt.Errorf("prepare tests: %w", err)
	}
	if os.Getenv("TMPDIR") != "" || Argument("test.bench") != "" || !fits(memory) {
		return nil
	}
	return os.Setenv("TMPDIR", memory)
}

// Argument returns the value of a flag of the test process before the testing package parses them: "" if it is not
// given, "true" if it has no value.
func Argument(name string) string {
	for _, arg := range os.Args[1:] {
		given, value, valued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case given == name && valued:
			return value
		case given == name:
			return "true"
		}
	}
	return ""
}

// memory is a file system in memory, on Linux. The tests of all packages together need least bytes of it.
const memory, least = "/dev/shm", 8 << 30

// fits reports whether dir has room, and programs in it can be run.
func fits(dir string) bool {
	var free syscall.Statfs_t
	if err := syscall.Statfs(dir, &free); err != nil || uint64(free.Bavail)*uint64(free.Bsize) < least { //nolint:unconvert // the types differ between systems
		return false
	}
	script, err := os.CreateTemp(dir, "executable")
	if err != nil {
		return false
	}
	defer os.Remove(script.Name())
	_, err = script.WriteString("#!/bin/sh\n")
	for _, step := range []error{err, script.Chmod(0o700), script.Close()} {
		if step != nil {
			return false
		}
	}
	return exec.Command(script.Name()).Run() == nil
}
