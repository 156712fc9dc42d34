package core

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// TestKernelLimitIsNoFullDisk: the kernel refuses shared memory with the error of a full disk.
func TestKernelLimitIsNoFullDisk(t *testing.T) {
	t.Parallel()
	const (
		segments = "FATAL:  could not create shared memory segment: No space left on device\n" +
			"DETAIL:  Failed system call was shmget(key=99, size=56, 03600).\n" +
			"HINT:  This error does *not* mean that you have run out of disk space.\n"
		wal    = "PANIC:  could not write to file \"pg_wal/xlogtemp.7\": No space left on device\n"
		resize = `could not resize shared memory segment "/PostgreSQL.7" to 8388608 bytes: No space left on device`
		mapped = `could not resize shared memory segment "pg_dynshmem/mmap.7" to 8388608 bytes: No space left on device`
	)
	c := &Core{Config: Config{DataDir: t.TempDir()}}
	for _, at := range []struct {
		err  error
		code model.Code
		says string
	}{
		{errors.New("start postmaster: it exited with status 1\n" + segments), model.CodeConflict, "kernel.shmmni"},
		{errors.New("FATAL:  could not create semaphores: No space left on device"), model.CodeConflict, "kernel.sem"},
		{errors.New("FATAL:  " + resize), model.CodeConflict, "/dev/shm"},
		{&pgconn.PgError{Severity: "ERROR", Code: "53100", Message: resize}, model.CodeConflict, "/dev/shm"},
		{&pgconn.PgError{Severity: "ERROR", Code: "53100", Message: mapped}, model.CodeForbidden, DiskFull},
		{&pgconn.PgError{Severity: "ERROR", Code: "53100", Message: `could not extend file "base/5/16384": No space left on device`}, model.CodeForbidden, DiskFull},
		{errors.New(wal), model.CodeForbidden, DiskFull},
		{errors.New(segments + wal), model.CodeForbidden, DiskFull},
		{errors.New(wal + segments), model.CodeForbidden, DiskFull},
		{fmt.Errorf("%s: %w", resize, syscall.ENOSPC), model.CodeForbidden, DiskFull},
		{errors.New("FATAL:  could not create shared memory segment: Permission denied"), model.CodeInternal, ""},
	} {
		full := at.code == model.CodeForbidden
		if IsDiskFull(at.err) != full {
			t.Errorf("%v counts as a full disk: %t", at.err, !full)
		}
		down := c.ExplainDown(at.err.Error())
		if !strings.Contains(down, at.says) || strings.HasPrefix(down, DiskFull) != full {
			t.Errorf("down for %v: %s", at.err, down)
		}
		for _, err := range []error{ExplainDiskFull(at.err), ExplainDiskFull(c.ExplainFailed(at.err))} {
			if model.CodeOf(err) != at.code || !strings.Contains(model.PublicMessage(err), at.says) || !errors.Is(err, at.err) {
				t.Errorf("%v is %v (%s)", at.err, err, model.CodeOf(err))
			}
		}
	}
}
