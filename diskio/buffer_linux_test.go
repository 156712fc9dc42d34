package diskio

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestBuffersGoBack lets go of a gigabyte of buffers, and sees the process
// without it.
func TestBuffersGoBack(t *testing.T) {
	const size = 1 << 30
	before := mapped(t)
	all := make([]*Buffer, 0, size/(hugePage/8))
	for range cap(all) {
		all = append(all, NewBuffer(hugePage/8))
	}
	with := mapped(t)
	if with-before < size {
		t.Fatalf("%d bytes were mapped for %d", with-before, size)
	}
	runtime.KeepAlive(all)
	for deadline := time.Now().Add(30 * time.Second); mapped(t) > with-size; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d bytes, %d with the buffers, %d before", mapped(t), with, before)
		}
	}
}

// mapped returns how much memory the process has, in use or not, in bytes.
func mapped(t *testing.T) int {
	t.Helper()
	var pages int
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), &pages)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
