package cli_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testenv"
)

// TestInterruptedInput checks that a command that waits for input ends when
// interrupted, and restores the terminal.
func TestInterruptedInput(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	for name, args := range map[string][]string{
		"password": {"user", "create", "ada@example.com"},
		"archive":  {"import-all", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := m.dataDir
			if name == "archive" {
				dir += "-new"
			}
			input, output, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			defer output.Close()
			if _, err := output.WriteString("a part"); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, append([]string{"admin", "--data-dir", dir}, args...)...)
			cmd.Stdin = input
			interrupt(t, cmd, func() bool {
				left, err := unix.IoctlGetInt(int(input.Fd()), unix.TIOCINQ)
				return err == nil && left == 0
			})
			if _, err := os.Stat(m.dataDir + "-new"); err == nil {
				t.Error("a data directory was made")
			}
		})
	}
	t.Run("terminal", func(t *testing.T) {
		master, terminal := openTerminal(t)
		before := terminalModes(t, terminal)
		var prompt lockedBuffer
		cmd := exec.Command(program, "admin", "user", "create", "ada@example.com", "--data-dir", m.dataDir)
		cmd.Stdin, cmd.Stderr = terminal, &prompt
		interrupt(t, cmd, func() bool {
			return strings.Contains(prompt.String(), "Password:") && terminalModes(t, terminal)&unix.ECHO == 0
		})
		if after := terminalModes(t, terminal); after != before {
			t.Errorf("the terminal was left with %#x, not %#x", after, before)
		}
		master.Close()
	})
}

// interrupt starts a command, interrupts it while it waits, and expects it to
// end.
func interrupt(t *testing.T, cmd *exec.Cmd, waits func() bool) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	defer cmd.Process.Kill()
	testenv.Eventually(t, "the wait for input", waits)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-exited:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 130 {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// openTerminal opens a pseudoterminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

func terminalModes(t *testing.T, terminal *os.File) uint32 {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return modes.Lflag
}

// TestSecondInterruptEndsAtOnce checks that a second interrupt does not wait
// for the shutdown that the first started.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--warm", "0")
	conn, err := net.Dial("tcp", m.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A request that lasts longer than the appliance waits for it.
	fmt.Fprintf(conn, "POST /v1/databases HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n", m.listen, m.key)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("its body is not awaited: %q, %v", line, err)
	}
	testenv.Eventually(t, "its end", func() bool {
		_ = m.process.Process.Signal(os.Interrupt) // it may have ended
		select {
		case err := <-m.exited:
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Errorf("ended with %v", err)
			}
			return true
		default:
			return false
		}
	})
	m.process = nil
}
