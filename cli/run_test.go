package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// sandboxed is a `run` whose command prints its database's location, and runs
// until it is told to end.
type sandboxed struct {
	*exec.Cmd
	name, port string
	say        *bufio.Reader
	stdin      io.WriteCloser
	stderr     *lockedBuffer
}

// startRun starts `run` with a command that waits for the end of its input.
func startRun(t *testing.T, cache string, args ...string) *sandboxed {
	t.Helper()
	s := &sandboxed{stderr: &lockedBuffer{}}
	args = append([]string{"run"}, append(args, "--", "sh", "-c", `echo $PGDATABASE $PGPORT; cat; echo bye`)...)
	s.Cmd = exec.Command(program, args...)
	s.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s")
	s.Stderr, s.WaitDelay = s.stderr, time.Minute
	stdout, err := s.StdoutPipe()
	if err == nil {
		s.stdin, err = s.StdinPipe()
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill() })
	s.say = bufio.NewReader(stdout)
	if _, err := fmt.Fscan(s.say, &s.name, &s.port); err != nil {
		t.Fatalf("the command does not run: %v\n%s", err, s.stderr)
	}
	return s
}

// end lets the command end and waits for `run`.
func (s *sandboxed) end(t *testing.T) {
	t.Helper()
	s.stdin.Close()
	if text, _ := io.ReadAll(s.say); !strings.Contains(string(text), "bye") {
		t.Errorf("the command did not come to its end: %q", text)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("run: %v\n%s", err, s.stderr)
	}
}

// lost waits for `run` to end its command after the loss of the database, and
// checks the reason it gives.
func (s *sandboxed) lost(t *testing.T, why string) {
	t.Helper()
	if text, _ := io.ReadAll(s.say); strings.Contains(string(text), "bye") {
		t.Errorf("the command came to its end: %q", text)
	}
	if err := s.Wait(); s.ProcessState.ExitCode() != 122 {
		t.Errorf("run: %v", err)
	}
	if said := s.stderr.String(); strings.Count(said, why) != 1 {
		t.Errorf("run said: %q", said)
	}
}

// kill kills `run` with SIGKILL.
func (s *sandboxed) kill(t *testing.T) {
	t.Helper()
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.stdin.Close() // the orphaned command ends
	_ = s.Wait()
}

// names returns the names of the databases.
func (m *machine) names() string {
	m.t.Helper()
	var all []struct{ Name string }
	m.must("GET", "/databases", nil, &all)
	return fmt.Sprint(all)
}

// noInstances checks that no data directory is left.
func noInstances(t *testing.T, dataDir string) bool {
	t.Helper()
	for _, place := range []string{"quarantine", "backups"} {
		if len(names(filepath.Join(dataDir, place))) > 0 {
			return false
		}
	}
	return len(instances(dataDir)) == 0
}

// instances returns the directories of databases, without those of warm servers.
func instances(dataDir string) (ids []string) {
	warm := warmServers(dataDir)
	for _, id := range names(filepath.Join(dataDir, "instances")) {
		if warm[strings.TrimSuffix(id, ".removing")] == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestRunIsKilled kills `run`, and then the appliance: both remove the
// database, and never to the trash.
func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--backup-interval", "0")
	s := startRun(t, "", "--data-dir", m.dataDir)
	if !strings.Contains(m.names(), s.name) {
		t.Errorf("databases: %s, without %s", m.names(), s.name)
	}
	s.kill(t)
	testenv.Eventually(t, "the end of the database", func() bool { return m.names() == "[]" && noInstances(t, m.dataDir) })

	s = startRun(t, "", "--data-dir", m.dataDir)
	m.kill()
	m.start("--backup-interval", "0")
	if names := m.names(); names != "[]" {
		t.Errorf("after a kill there is %s", names)
	}
	if !noInstances(t, m.dataDir) {
		t.Error("after a kill there are data directories")
	}
	if out, _, _ := m.run("", "admin", "trash", "list", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("in the trash: %s", out)
	}
	s.lost(t, "the appliance has ended, and the database with it")
}

// TestRunEndsWithTheAppliance shuts an appliance down in order while a sandbox
// is held.
func TestRunEndsWithTheAppliance(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--backup-interval", "0")
	s := startRun(t, "", "--data-dir", m.dataDir)
	m.stop()
	if !noInstances(t, m.dataDir) {
		t.Error("there are data directories")
	}
	s.lost(t, "the appliance is being stopped, and the database with it")
}

// TestRunEndsWithItsDatabase deletes the database of a `run`, as any client
// with a key can.
func TestRunEndsWithItsDatabase(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--backup-interval", "0")
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	s := startRun(t, "", "--data-dir", m.dataDir)
	var all []database
	m.must("GET", "/databases", nil, &all)
	if len(all) != 1 {
		t.Fatalf("%d databases", len(all))
	}
	m.must("DELETE", "/databases/"+all[0].ID, nil, nil)
	s.lost(t, "the database was deleted")
	if !noInstances(t, m.dataDir) {
		t.Error("there are data directories")
	}
}

// TestRunEndsWhatItStarted kills the appliance of a command that ignores SIGTERM
// and that has started another such process, and one in its own session.
func TestRunEndsWhatItStarted(t *testing.T) {
	t.Parallel()
	cache, _ := privateCache(t)
	word := "below-" + filepath.Base(cache) // in the arguments of all three
	script := `trap "" TERM; (sleep 1000; : ` + word + `) & setsid sh -c 'sleep 1000; : ` + word + `' & echo $PGDATABASE; wait`
	cmd := exec.Command(program, "run", "--private", "--", "sh", "-c", script)
	stderr := &lockedBuffer{}
	cmd.Env, cmd.Stderr = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s"), stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the command does not run: %v\n%s", err, stderr)
	}
	killAppliance(t, cache)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 122 {
		t.Errorf("run: %v\n%s", err, stderr)
	}
	if left := processesNaming(word); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// TestRunLasts runs commands for longer than the appliance's request timeout:
// their databases last as long as they do.
func TestRunLasts(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.start("--backup-interval", "0")
	cache, _ := privateCache(t)
	for name, where := range map[string][]string{"appliance": {"--data-dir", m.dataDir}, "private": {"--private"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(append([]string{"run"}, where...), "--",
				"sh", "-c", `psql -qc 'create table kept (n int)'; sleep 40; psql -Atc 'select count(*) from kept'`)
			cmd := exec.Command(program, args...)
			stderr := &lockedBuffer{}
			cmd.Env, cmd.Stderr = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOLDFAST_PRIVATE_IDLE=1s"), stderr
			if out, err := cmd.Output(); err != nil || string(out) != "0\n" {
				t.Errorf("%q, %v: %s", out, err, stderr)
			}
		})
	}
}

// TestRunPassesSignals sends `run` signals for its command.
func TestRunPassesSignals(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	cmd := exec.Command(program, "run", "--data-dir", m.dataDir, "--", "sh", "-c", `trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done`)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if lines.Scan(); lines.Text() != "got it" {
		t.Errorf("the command said %q", lines.Text())
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("run: %v", err)
	}
}

// privateCache creates a place for a private appliance, and checks that it
// ends.
func privateCache(t *testing.T) (cache, dataDir string) {
	t.Helper()
	cache, err := os.MkdirTemp("", "hf-")
	if err == nil {
		err = os.Chmod(cache, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(cache) })
	t.Cleanup(func() {
		testenv.Eventually(t, "the end of the private appliance", func() bool { return len(processesNaming(cache)) == 0 })
	})
	return cache, filepath.Join(cache, "holdfast", "sandbox")
}

// TestRunPrivately runs commands without a running appliance: they share a
// private one, and only its warm pool remains.
func TestRunPrivately(t *testing.T) {
	t.Parallel()
	cache, dataDir := privateCache(t)
	first, second := startRun(t, cache, "--private"), startRun(t, cache, "--private")
	if first.name == second.name || first.port == second.port {
		t.Errorf("both have %s at %s", first.name, first.port)
	}
	appliances := 0
	for _, pid := range processesNaming(cache) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(text), "private-appliance") {
			appliances++
		}
	}
	if appliances != 1 {
		t.Errorf("%d appliances", appliances)
	}
	first.end(t)
	second.end(t)
	if !noInstances(t, dataDir) {
		t.Error("there are data directories")
	}
}

// TestRunPrivatelyIsKilled kills a `run` and its appliance: the next `run`
// cleans up. A `run` whose appliance was killed cleans up itself when it ends.
func TestRunPrivatelyIsKilled(t *testing.T) {
	t.Parallel()
	cache, dataDir := privateCache(t)
	first := startRun(t, cache, "--private")
	killAppliance(t, cache)
	first.kill(t)
	second := startRun(t, cache, "--private")
	if left := instances(dataDir); len(left) != 1 {
		t.Errorf("beside the second database there are others: %v", left)
	}
	killAppliance(t, cache)
	second.lost(t, "the appliance has ended, and the database with it")
	if !noInstances(t, dataDir) {
		t.Error("there are data directories")
	}
}

func killAppliance(t *testing.T, cache string) {
	t.Helper()
	for _, pid := range processesNaming(cache) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(text), "private-appliance") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// BenchmarkRun measures the time from the start of `run` to that of its
// command, with a running appliance and with a private one that is started for
// it.
func BenchmarkRun(b *testing.B) {
	m := newMachine(b)
	m.start("--warm", "2")
	b.Run("appliance", func(b *testing.B) { benchmarkRun(b, time.Second, "--data-dir", m.dataDir) })
	cache, err := os.MkdirTemp("", "hf-")
	if err == nil {
		err = os.Chmod(cache, 0o755)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(cache)
	b.Setenv("XDG_CACHE_HOME", cache)
	b.Setenv("HOLDFAST_PRIVATE_IDLE", "2s")
	b.Run("private", func(b *testing.B) { benchmarkRun(b, time.Second, "--private") })
	testenv.Eventually(b, "the end of the private appliance", func() bool { return len(processesNaming(cache)) == 0 })
	b.Run("start", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			testenv.Eventually(b, "the end of the private appliance", func() bool { return len(processesNaming(cache)) == 0 })
			b.StartTimer()
			runOnce(b, 0, "--private")
		}
	})
	testenv.Eventually(b, "the end of the private appliance", func() bool { return len(processesNaming(cache)) == 0 })
}

// benchmarkRun gives the appliance a pause in which it prepares a directory.
func benchmarkRun(b *testing.B, pause time.Duration, args ...string) {
	runOnce(b, 3*time.Second, args...)
	for b.Loop() {
		runOnce(b, pause, args...)
	}
}

func runOnce(b *testing.B, pause time.Duration, args ...string) {
	began := time.Now()
	out, err := exec.Command(program, append(append([]string{"run"}, args...), "date", "+%s%N")...).Output()
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	var at int64
	if _, err := fmt.Sscan(string(out), &at); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Unix(0, at).Sub(began).Seconds()*1000, "ms/start")
	time.Sleep(pause)
	b.StartTimer()
}

// TestRunWithoutCache: where the cache directory cannot be made, the error names the variable for another one.
func TestRunWithoutCache(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "run", "--", "true")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME=/proc/cache")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "mkdir /proc/cache: ") || !strings.Contains(string(out), "; set XDG_CACHE_HOME to a directory that can be written") {
		t.Errorf("%v: %s", err, out)
	}
}
