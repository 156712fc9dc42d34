package sandbox

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

// TestForwardedHeedsNohup: a signal that is ignored stays ignored, and is not forwarded.
func TestForwardedHeedsNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	has := func(all []os.Signal, s os.Signal) bool { return slices.Contains(all, s) }
	if got := forwarded(); has(got, syscall.SIGHUP) || !has(got, syscall.SIGTERM) {
		t.Errorf("it forwards %v", got)
	}
}
