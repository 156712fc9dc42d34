package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/blobstore"
)

// helperTask, when set, makes this test binary a process that does one thing,
// for tests that kill it or measure it. helperInput is a helperArgs as JSON.
const (
	helperTask  = "HOLDFAST_BACKUP_TEST_TASK"
	helperInput = "HOLDFAST_BACKUP_TEST_INPUT"
)

type helperArgs struct {
	URL    string // of a replication connection
	Store  string
	Source Result
	Dir    string
	Stop   int64 // percent of the restore to wait at, for ever
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
		err = helperDo(task, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func helperDo(task string, args helperArgs) error {
	ctx := context.Background()
	store, err := blobstore.Open(args.Store, blobstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if task == "restore" {
		return Restore(ctx, store, args.Source, args.Dir, RestoreOptions{Progress: func(done, total int64) {
			if done*100 >= total*args.Stop {
				fmt.Println("stopped")
				time.Sleep(time.Hour) // until the test kills us
			}
		}})
	}
	conn, err := pgconn.Connect(ctx, args.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	result, err := Take(ctx, conn, store, Options{Label: "memory"})
	if err != nil {
		return err
	}
	taken := peakMemory()
	if err := Restore(ctx, store, result, args.Dir, RestoreOptions{}); err != nil {
		return err
	}
	fmt.Println(result.SizeBytes, taken, peakMemory())
	return nil
}

// peakMemory is the most this process ever had in memory, in KiB.
func peakMemory() (kib int) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}
