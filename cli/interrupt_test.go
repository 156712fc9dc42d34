package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignals: a signal that comes twice at once, as timeout(1) sends it to the process and to its group, is one. A second
// one later ends the appliance at once, and the log says that the databases keep running.
func TestSignals(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	db := m.createDatabase("shop")
	url := m.connectionURL(db.ID)
	process := m.process.Process
	for range 3 {
		_ = process.Signal(syscall.SIGTERM)
		time.Sleep(5 * time.Millisecond)
	}
	m.stop()
	if running := m.processes(); len(running) > 0 {
		t.Errorf("still running: %v", running)
	}

	m.start()
	m.awaitAvailable(db.ID)
	query(t, url, "select 1")
	servers := m.processes()
	for _, pid := range servers {
		if pid != m.process.Process.Pid {
			_ = syscall.Kill(pid, syscall.SIGSTOP) // so that it does not stop
			defer syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	_ = m.process.Process.Signal(syscall.SIGTERM)
	time.Sleep(1200 * time.Millisecond)
	_ = m.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-m.exited:
		if err == nil || !strings.Contains(err.Error(), "terminated") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a second signal does not end it")
		m.kill()
	}
	m.process = nil
	if !strings.Contains(m.log.String(), "the databases keep running") {
		t.Errorf("the log does not say that the databases keep running:\n%s", m.log.String())
	}
	for _, pid := range servers {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	m.start()
	m.awaitAvailable(db.ID)
	query(t, url, "select 1")
}
