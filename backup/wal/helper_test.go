package wal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable/faultfs"
)

// helperTask, when set, makes this test binary a process that performs one task, for tests that kill it. helperInput
// is a helperArgs as JSON.
const (
	helperTask  = "HOLDFAST_WAL_TEST_TASK"
	helperInput = "HOLDFAST_WAL_TEST_INPUT"
)

type helperArgs struct {
	URL     string // of the server
	Dir     string // its pg_wal
	Archive string
	Kill    int // the file operation to be killed at
}

// helper returns the command that starts it. The binary's path may be in a directory that became inaccessible when
// the test gave up root; the link in /proc stays accessible.
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

func helperDo(task string, args helperArgs) error {
	switch task {
	case "append":
		return appendAndDie(args)
	case "prune":
		return pruneAndDie(args)
	case "receive":
		return receiveForever(args)
	}
	return fmt.Errorf("no such task: %q", task)
}

// pruneAndDie prunes, and kills itself at a file operation.
func pruneAndDie(args helperArgs) error {
	a, err := Open(args.Archive, Options{FS: faultfs.KillNth(args.Kill)})
	if err != nil {
		return err
	}
	_, err = a.Prune([]Keep{{1, pruneFrom}})
	return errors.Join(err, a.Close())
}

// appendAndDie appends WAL, prints the positions confirmed as durable, and kills itself at a file operation.
func appendAndDie(args helperArgs) error {
	a, w, err := openWriter(args.Archive, faultfs.KillNth(args.Kill))
	if err != nil {
		return err
	}
	if err := appendAll(w, longWAL(2, nil), func(to xlog.LSN) { fmt.Println(to) }); err != nil {
		return err
	}
	w.compressor.wait()
	return errors.Join(w.Close(), a.Close())
}

// receiveForever runs a receiver that will be killed.
func receiveForever(args helperArgs) error {
	a, err := Open(args.Archive, Options{})
	if err != nil {
		return err
	}
	if err := a.Create(1, nil); err != nil {
		return err
	}
	_, err = OpenReceiver(ReceiverOptions{
		Archive: a, Generation: 1, Slot: "holdfast", Dir: args.Dir,
		SQL: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, args.URL) },
	})
	if err != nil {
		return err
	}
	fmt.Println("receiving")
	select {}
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
