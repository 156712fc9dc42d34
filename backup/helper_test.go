package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
)

// helperTask, when set, makes this test binary a process that performs one task, for tests that kill or measure it.
// helperInput is a helperArgs as JSON.
const (
	helperTask  = "HOLDFAST_BACKUP_TEST_TASK"
	helperInput = "HOLDFAST_BACKUP_TEST_INPUT"
)

type helperArgs struct {
	URL        string
	Repository string
	ID, Base   string
	Dir        string
	Stop       int64 // percent to stop at, for ever; above 100: after the end
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

// reached blocks for ever once the work has reached that point.
func (a helperArgs) reached(done, total int64) {
	if a.Stop > 0 && done*100 >= total*a.Stop {
		fmt.Println("stopped")
		time.Sleep(time.Hour) // until the test kills this process
	}
}

func helperDo(task string, args helperArgs) error {
	ctx := context.Background()
	repo, err := repository.Open(args.Repository)
	if err != nil {
		return err
	}
	defer repo.Close()
	switch task {
	case "restore":
		err = helperRestore(ctx, repo, args)
	case "take":
		err = helperTake(ctx, repo, args)
	case "memory":
		err = helperMemory(ctx, repo, args)
	}
	if err == nil && args.Stop > 100 {
		args.reached(args.Stop, 1)
	}
	return err
}

func helperRestore(ctx context.Context, repo *repository.Repository, args helperArgs) error {
	source, err := repo.Snapshot(args.ID)
	if err != nil {
		return err
	}
	defer source.Close()
	return Restore(ctx, source, args.Dir, RestoreOptions{Progress: args.reached})
}

func helperTake(ctx context.Context, repo *repository.Repository, args helperArgs) error {
	conn, err := pgx.Connect(ctx, args.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = Take(ctx, conn, repo, instantly{}, Options{ID: args.ID, Base: args.Base, Whole: true, Progress: args.reached})
	return err
}

// instantly is an archive that already has everything.
type instantly struct{}

func (instantly) WaitFor(context.Context, uint32, xlog.LSN) error { return nil }

func (instantly) Covers(uint32, xlog.LSN, xlog.LSN) error { return nil }

func (instantly) ChangedPages(context.Context, uint32, xlog.LSN, xlog.LSN) (Changes, error) {
	return nil, wal.ErrGap
}

// helperMemory takes two backups and restores the second.
func helperMemory(ctx context.Context, repo *repository.Repository, args helperArgs) error {
	args.ID = "b1"
	if err := helperTake(ctx, repo, args); err != nil {
		return err
	}
	args.ID, args.Base = "b2", "b1"
	if err := helperTake(ctx, repo, args); err != nil {
		return err
	}
	taken := peakMemory()
	if err := helperRestore(ctx, repo, args); err != nil {
		return err
	}
	fmt.Println(taken, peakMemory())
	return nil
}

// peakMemory returns the peak memory of this process in KiB.
func peakMemory() (kib int) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}
