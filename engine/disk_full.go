package engine

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

// diskFull is what clients are told, and how a reason begins, when something
// needs room and there is none.
const diskFull = "the disk is full"

// errDiskFull is in what explainFailed returns.
var errDiskFull = errors.New(diskFull)

// roomInterval is how long recordWithRoom waits until it tries again.
const roomInterval = time.Second

// recordLater makes good for a commit of what has happened already, which
// failed with err. When that was for lack of room it commits fn as soon as there
// is some, behind the caller's back; what is not recorded when the engine closes
// is settled by the next start. It returns err.
func (e *Engine) recordLater(err error, what string, fn func(*meta.Tx) error) error {
	if err == nil || !isDiskFull(err) {
		return err
	}
	e.log.Warn("no room to record "+what+": trying until there is", "error", err)
	e.background(func(ctx context.Context) {
		if err := e.recordWithRoom(ctx, fn); err != nil && ctx.Err() == nil {
			e.log.Error("record "+what, "error", err)
		}
	})
	return noRoom(err)
}

func (e *Engine) recordWithRoom(ctx context.Context, fn func(*meta.Tx) error) error {
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.meta.Update(fn); err == nil || !isDiskFull(err) {
			return err
		}
	}
}

// noRoom puts into words for the client that err comes from a full disk, and
// leaves every other error alone.
func noRoom(err error) error {
	if err == nil || model.CodeOf(err) != model.CodeInternal || !isDiskFull(err) {
		return err
	}
	return &model.Error{Code: model.CodeForbidden, Message: diskFull + ": the operator must make room", Err: err}
}

// isDiskFull knows the error of a system call, of a server (disk_full), of what a
// program such as initdb or a dying server says, and of explainFailed.
func isDiskFull(err error) bool {
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

// leastRoom is what a server needs at the least to begin another WAL segment.
const leastRoom = 16 << 20

// spareRoom is what a disk must have free for spares to be made ahead of need.
const spareRoom = 512 << 20

func (e *Engine) roomForSpares() bool {
	host, err := measureHost(e.cfg.DataDir)
	return err != nil || host.DiskFree >= spareRoom
}

// explainFailed is explainDown for what failed with err: noRoom knows what it
// returns.
func (e *Engine) explainFailed(err error) error {
	if reason := err.Error(); e.explainDown(reason) != reason {
		return fmt.Errorf("%w: %w", errDiskFull, err)
	}
	return err
}

// explainDown puts first, in the reason why an instance is down, that the disk
// is full: a server often dies of it without a word, because there was no room
// for that either.
func (e *Engine) explainDown(reason string) string {
	full := saysDiskFull(reason)
	if host, err := measureHost(e.cfg.DataDir); err == nil && host.DiskFree < leastRoom {
		full = true
	}
	if full {
		return diskFull + ": " + reason
	}
	return reason
}
