package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DiskFull is what clients are told, and how a reason begins, when something
// needs space and there is none.
const DiskFull = "the disk is full"

// errDiskFull is in what ExplainFailed returns.
var errDiskFull = errors.New(DiskFull)

// DiskFullRetry is how long RecordOnceSpace waits between two attempts.
const DiskFullRetry = time.Second

// RecordLater handles err, the failure to commit what has happened already. If the
// disk was full, it commits fn in the background as soon as there is space; what is
// not recorded when the engine closes is recovered by the next start. It returns err.
func (c *Core) RecordLater(err error, what string, fn func(*meta.Tx) error) error {
	if err == nil || !IsDiskFull(err) {
		return err
	}
	c.Log.Warn("no room to record "+what+": trying until there is", "error", err)
	c.Background(func(ctx context.Context) {
		if err := c.RecordOnceSpace(ctx, fn); err != nil && ctx.Err() == nil {
			c.Log.Error("record "+what, "error", err)
		}
	})
	return NoRoom(err)
}

// RecordOnceSpace commits fn as soon as the disk has space, until ctx ends.
func (c *Core) RecordOnceSpace(ctx context.Context, fn func(*meta.Tx) error) error {
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

// NoRoom puts into words for the client that err comes from a full disk, and
// leaves every other error alone.
func NoRoom(err error) error {
	if err == nil || model.CodeOf(err) != model.CodeInternal || !IsDiskFull(err) {
		return err
	}
	return &model.Error{Code: model.CodeForbidden, Message: DiskFull + ": the operator must make room", Err: err}
}

// IsDiskFull knows the error of a system call, of a server (disk_full), of what a
// program such as initdb or a dying server says, and of ExplainFailed.
func IsDiskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errDiskFull) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "53100" {
		return true
	}
	return saysDiskFull(err.Error())
}

func saysDiskFull(text string) bool {
	return strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, "No space left on device") ||
		strings.Contains(text, "Disk quota exceeded")
}

// MinFreeSpace is what a server needs at the least to begin another WAL segment.
const MinFreeSpace = 16 << 20

// warmPoolFreeSpace is what a disk must have free for prepared directories to be made ahead of need.
const warmPoolFreeSpace = 512 << 20

// FreeSpaceForWarmPool reports whether the disk has the space for the warm pool to
// build ahead of need.
func (c *Core) FreeSpaceForWarmPool() bool {
	host, err := MeasureHost(c.Config.DataDir)
	return err != nil || host.DiskFree >= warmPoolFreeSpace
}

// ExplainFailed is ExplainDown for what failed with err: NoRoom knows what it
// returns.
func (c *Core) ExplainFailed(err error) error {
	if reason := err.Error(); c.ExplainDown(reason) != reason {
		return fmt.Errorf("%w: %w", errDiskFull, err)
	}
	return err
}

// ExplainDown puts first, in the reason why an instance is down, that the disk
// is full: a server often dies of it without a word, because there was no room
// for that either.
func (c *Core) ExplainDown(reason string) string {
	full := saysDiskFull(reason)
	if host, err := MeasureHost(c.Config.DataDir); err == nil && host.DiskFree < MinFreeSpace {
		full = true
	}
	if full {
		return DiskFull + ": " + reason
	}
	return reason
}
