package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"holdfast/server/api/wire"
)

// TestEventsOverARestart follows events while the appliance is killed and starts again.
func TestEventsOverARestart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.key = createKey(t, m, "--preset", "full_access")
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{"events"}, args...)...)
		cmd.Env = append(os.Environ(), "HOLDFAST_URL="+m.api, "HOLDFAST_API_KEY="+m.key)
		return cmd
	}
	cmd := command("--json", "--type", "key.*", "--after", "event_0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	received := make(chan wire.Event, 100)
	go func() {
		defer close(received)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e wire.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("%s: %v", lines.Text(), err)
			}
			received <- e
		}
	}()
	await := func(name string) {
		t.Helper()
		for timeout := time.After(time.Minute); ; {
			select {
			case e, open := <-received:
				if !open {
					t.Fatal("the command has ended")
				}
				if e.Type == "key.created" && e.Data.Resource.Name == name {
					return
				}
			case <-timeout:
				t.Fatalf("no event of %s", name)
			}
		}
	}
	for name := range strings.SplitSeq("first second", " ") {
		m.must("POST", "/account/api-keys", map[string]any{"name": name, "preset": "read_only"}, nil)
		await(name)
		m.kill()
		m.start()
	}
	m.must("POST", "/account/api-keys", map[string]any{"name": "third", "preset": "read_only"}, nil)
	await("third")
	wrong := command("--type", "nonsense")
	if text, _ := wrong.CombinedOutput(); wrong.ProcessState.ExitCode() != 2 || !strings.Contains(string(text), "type") {
		t.Errorf("an unknown type: %s", text)
	}
}
