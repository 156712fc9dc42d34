package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DiskFull is the message to clients, and the start of a reason, when an operation
// needs disk space and there is none.
const DiskFull = "the disk is full"

// errDiskFull is wrapped by the errors of ExplainFailed.
var errDiskFull = errors.New(DiskFull)

// DiskFullRetry is the time between two attempts of RecordWhenSpace.
const DiskFullRetry = time.Second

// RecordLater handles err, the failure to commit something that has already happened.
// If the disk was full, it commits fn in the background once there is space; the next
// start recovers what is not recorded when the engine closes. It returns err.
func (c *Core) RecordLater(err error, what string, fn func(*meta.Tx) error) error {
	if err == nil || !IsDiskFull(err) {
		return err
	}
	c.Log.Warn("no disk space to record "+what+": retrying until there is", "error", err)
	c.Background(func(ctx context.Context) {
		if err := c.RecordWhenSpace(ctx, fn); err != nil && ctx.Err() == nil {
			c.Log.Error("record "+what, "error", err)
		}
	})
	return ExplainDiskFull(err)
}

// RecordWhenSpace commits fn once the disk has space, until ctx ends.
func (c *Core) RecordWhenSpace(ctx context.Context, fn func(*meta.Tx) error) error {
	ticker := time.NewTicker(DiskFullRetry)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.Meta.Update(fn); err == nil || !IsDiskFull(err) {
			return err
		}
	}
}

// ExplainDiskFull turns an error from a full disk, or from a limit of the kernel that
// looks like one, or that the metadata are read-only, into one for the client. It returns
// every other error unchanged.
func ExplainDiskFull(err error) error {
	if err == nil || model.CodeOf(err) != model.CodeInternal {
		return err
	}
	if IsDiskFull(err) {
		return NoSpace(err, "%s: the operator must free disk space", DiskFull)
	}
	if errors.Is(err, meta.ErrReadOnly) {
		return &model.Error{
			Code:    model.CodeForbidden,
			Message: "the metadata are read-only since a sync to disk failed; the operator must check the disk and restart holdfast",
			Err:     err,
		}
	}
	if limit := kernelLimit(err.Error()); limit != "" {
		return &model.Error{Code: model.CodeConflict, Message: limit, Err: err}
	}
	return err
}

// NoSpace returns the error for what needs more disk space than there is. cause may be nil.
func NoSpace(cause error, format string, args ...any) *model.Error {
	return &model.Error{Code: model.CodeForbidden, Reason: model.ReasonNoSpace, Message: fmt.Sprintf(format, args...), Err: cause}
}

// IsDiskFull recognizes the errors of system calls, of PostgreSQL (disk_full), of
// programs such as initdb or a crashing server, and of ExplainFailed.
func IsDiskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errDiskFull) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "53100" && kernelLimit(pg.Message) == "" {
		return true
	}
	return saysDiskFull(err.Error())
}

// saysDiskFull also recognizes what ends a session that begins on a full disk: write_relcache_init_file (relcache.c) does not
// say why a buffered write failed.
func saysDiskFull(text string) bool {
	text = withoutKernelLimits(text)
	return slices.ContainsFunc([]string{
		syscall.ENOSPC.Error(), "No space left on device", "Disk quota exceeded", "could not write init file",
	}, func(words string) bool { return strings.Contains(text, words) })
}

// MinFreeSpace is the minimum that a server needs to start another WAL segment.
const MinFreeSpace = 16 << 20

// warmPoolFreeSpace is the free disk space required to prepare directories in advance.
const warmPoolFreeSpace = 512 << 20

// FreeSpaceForWarmPool reports whether the disk has enough free space for the warm
// pool to prepare directories.
func (c *Core) FreeSpaceForWarmPool() bool {
	host, err := MeasureHost(c.Config.DataDir)
	return err != nil || host.DiskFree >= warmPoolFreeSpace
}

// ExplainFailed is ExplainDown for an operation that failed with err; ExplainDiskFull
// recognizes its result.
func (c *Core) ExplainFailed(err error) error {
	switch shortage := c.shortage(err.Error()); shortage {
	case "":
		return err
	case DiskFull:
		return fmt.Errorf("%w: %w", errDiskFull, err)
	default:
		return fmt.Errorf("%s: %w", shortage, err)
	}
}

// ExplainDown prefixes the reason why an instance is down with DiskFull or with the
// limit of the kernel, if it is down for lack of either.
func (c *Core) ExplainDown(reason string) string {
	if shortage := c.shortage(reason); shortage != "" {
		return shortage + ": " + reason
	}
	return reason
}

// shortage returns what a server lacks that is down for a reason, "" if nothing. A full
// disk is measured too: a server often dies of that without a message, because there
// was no space for one either.
func (c *Core) shortage(reason string) string {
	if saysDiskFull(reason) {
		return DiskFull
	}
	if host, err := MeasureHost(c.Config.DataDir); err == nil && host.DiskFree < MinFreeSpace {
		return DiskFull
	}
	return kernelLimit(reason)
}
