package wal

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// helperTask, when set, makes this test binary a process that does one thing,
// for tests that kill it. helperInput is a helperArgs as JSON.
const (
	helperTask  = "HOLDFAST_WAL_TEST_TASK"
	helperInput = "HOLDFAST_WAL_TEST_INPUT"
)

type helperArgs struct {
	URL     string // of the server
	Archive string
}

// helper is the command to start it. The binary's path may lie in a directory
// that is closed since the test gave up root; the link in /proc is not.
func helper(task string, args helperArgs) *exec.Cmd {
	path := "/proc/self/exe"
	if _, err := os.Stat(path); err != nil {
		path = os.Args[0]
	}
	input, _ := json.Marshal(args)
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), helperTask+"="+task, helperInput+"="+string(input))
	return cmd
}

func runHelper(task string) int {
	var args helperArgs
	err := json.Unmarshal([]byte(os.Getenv(helperInput)), &args)
	if err == nil {
		err = fmt.Errorf("no such task: %q", task)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
