package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// longestDump limits how long pg_dump may take.
const longestDump = 6 * time.Hour

// dumpSchema has pg_dump describe everything but the data, as of the snapshot. pg_dump receives no byte of the source
// before its memory limit is set. It is the only program that runs, and sees no secrets: its arguments and environment
// name a socket.
func dumpSchema(ctx context.Context, job Job, snapshot string, conn *pgconn.PgConn) ([]entry, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestDump, tooMuch("takes more than %v to be described", longestDump))
	defer cancel()
	r, err := openRelay(ctx, job.SocketDir, conn)
	if err != nil {
		return nil, err
	}
	defer r.close()
	cmd := exec.CommandContext(ctx, job.PgDump, "--format=custom", "--compress=0", "--schema-only", "--snapshot="+snapshot,
		"--no-password", "--no-subscriptions", "--no-security-labels", "--no-tablespaces", "--lock-wait-timeout=30s",
		"--host="+job.SocketDir, "--port="+strconv.Itoa(r.port), "--username=import", "--dbname=import")
	cmd.Env = append(slices.Clone(job.PgDumpEnv),
		"PATH="+os.Getenv("PATH"), "LC_MESSAGES=C", "PGPASSFILE=/nonexistent", "PGSERVICEFILE=/dev/null", "PGSYSCONFDIR=/nonexistent",
		"HOME=/nonexistent", "PGSSLMODE=disable", "PGGSSENCMODE=disable", "PGCLIENTENCODING=UTF8",
	)
	cmd.Dir = job.SocketDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	complaints := &complaint{}
	cmd.Stderr = complaints
	archive, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("run pg_dump: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run pg_dump: %w", err)
	}
	if err := limitMemory(cmd.Process.Pid, job.DumpMemory); err != nil {
		_ = cmd.Process.Kill()
		return nil, errors.Join(err, cmd.Wait())
	}
	r.start()
	entries, readErr := readArchive(archive)
	if readErr != nil {
		_ = cmd.Process.Kill() // it may be blocked writing
	}
	err = cmd.Wait()
	r.close()
	if r.refusal != nil {
		return nil, r.refusal
	}
	if err != nil && ctx.Err() == nil {
		said := complaints.String()
		if strings.Contains(said, "out of memory") {
			return nil, &model.Error{Code: model.CodeValidation, Err: err, Message: fmt.Sprintf(
				"pg_dump needs more memory to describe the source than the %s that it gets here; the source has too many objects, or too large ones: "+
					"copy it with pg_dump, part by part, or have the operator give the machine more memory", megabytes(job.DumpMemory))}
		}
		if said != "" {
			return nil, &model.Error{Code: model.CodeValidation, Message: "pg_dump cannot describe the source: " + said, Err: dumpError{err}}
		}
		return nil, errors.Join(fmt.Errorf("run pg_dump: %w", err), readErr)
	}
	return entries, errors.Join(context.Cause(ctx), readErr)
}

// dumpError marks an error that pg_dump reported.
type dumpError struct{ error }

func (e dumpError) Unwrap() error { return e.error }

// complaint keeps the beginning of a program's error messages.
type complaint struct{ text bytes.Buffer }

// Write implements io.Writer.
func (t *complaint) Write(p []byte) (int, error) {
	const most = 8 << 10
	t.text.Write(p[:min(len(p), max(0, most-t.text.Len()))])
	return len(p), nil
}

func (t *complaint) String() string {
	return oneLine(strings.ReplaceAll(t.text.String(), "pg_dump: error: ", ""))
}
