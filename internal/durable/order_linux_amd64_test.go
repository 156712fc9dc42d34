package durable

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestOrderOfSystemCalls traces a publication: the order of its system calls alone determines what survives a power
// cut.
func TestOrderOfSystemCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf")
	if err := os.WriteFile(path+".new", []byte("leftover"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{"unlink", "openat", "fchmod", "write", "fsync", "close", "rename", "openat", "fsync", "close"}
	if got := traceFile(t, path); !slices.Equal(got, want) {
		t.Errorf("the system calls were\n%s, want\n%s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// The main goroutine runs on the main thread, which is traced, until main begins, and longer only if it is locked
// here.
func init() {
	if os.Getenv(helperEnv) == "once" {
		runtime.LockOSThread()
	}
}

// traceFile runs publishTraced and returns the names of the file system calls that its main thread made.
func traceFile(t *testing.T, path string) []string {
	t.Helper()
	runtime.LockOSThread() // ptrace belongs to a thread
	defer runtime.UnlockOSThread()
	cmd := helper(t, "once", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	var calls []string
	listening, entering := false, true
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACESYSGOOD); err != nil {
		t.Fatal(err)
	}
	for signal := 0; ; {
		if err := syscall.PtraceSyscall(pid, signal); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Wait4(pid, &status, syscall.WALL, nil); err != nil {
			t.Fatal(err)
		}
		if status.Exited() || status.Signaled() {
			break
		}
		if signal = 0; status.StopSignal() != syscall.SIGTRAP|0x80 {
			signal = int(status.StopSignal()) // the runtime's own signal, passed on
			continue
		}
		if entering {
			var regs syscall.PtraceRegs
			if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
				t.Fatal(err)
			}
			if regs.Orig_rax == syscall.SYS_GETPPID {
				listening = !listening
			} else if name := fileCall(regs.Orig_rax); listening && name != "" {
				calls = append(calls, name)
			}
		}
		entering = !entering
	}
	if status.ExitStatus() != 0 {
		t.Fatalf("the traced process ended with %v", status)
	}
	return calls
}

func fileCall(number uint64) string {
	return map[uint64]string{
		syscall.SYS_OPENAT: "openat", syscall.SYS_FCHMOD: "fchmod", syscall.SYS_WRITE: "write", syscall.SYS_PWRITE64: "write",
		syscall.SYS_FSYNC: "fsync", syscall.SYS_FDATASYNC: "fsync", syscall.SYS_CLOSE: "close",
		syscall.SYS_RENAME: "rename", syscall.SYS_RENAMEAT: "rename", 316: "rename", // renameat2
		syscall.SYS_UNLINK: "unlink", syscall.SYS_UNLINKAT: "unlink",
		syscall.SYS_FTRUNCATE: "truncate", syscall.SYS_LINKAT: "link",
	}[number]
}
