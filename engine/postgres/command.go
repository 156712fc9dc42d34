package postgres

import (
	"bytes"
	"fmt"
	"os/exec"
	"syscall"

	"holdfast/engine/postgres/binaries"
)

// toolCommand is a program that runs to completion. Its output is kept for the
// error text.
type toolCommand struct {
	*exec.Cmd
	output bytes.Buffer
}

func newToolCommand(cmd *exec.Cmd) *toolCommand {
	t := &toolCommand{Cmd: cmd}
	cmd.Stdout, cmd.Stderr = &t.output, &t.output
	// Its own process group: initdb starts postgres processes, and all of them are
	// killed when the context ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return t
}

// runNice runs the program at the given niceness (0 = unchanged).
func runNice(t *toolCommand, nice int) error {
	if err := t.Start(); err != nil {
		return err
	}
	renice(t.Process.Pid, nice)
	if err := t.Wait(); err != nil {
		return fmt.Errorf("%w%s", err, binaries.Indent(t.output.String()))
	}
	return nil
}

// renice lowers the priority of a child and of the processes it starts from now
// on. It ignores failure: the work then runs at normal priority.
func renice(pid, nice int) {
	if nice > 0 {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, nice)
	}
}
