package backup

import (
	"context"

	"holdfast/backup/wal/xlog"
)

// Changes tells which pages of the files of a data directory changed between
// two moments.
type Changes interface {
	// Pages returns the changed page numbers, ascending, within the file at
	// path (slash-separated, relative to the data directory; a segment such as
	// "base/16384/16385.1" counts its own pages from 0). known is false when
	// the file must be read whole: created, truncated, unlogged, not a
	// relation's main fork, or simply unknown. It is called by several
	// goroutines at once.
	Pages(path string) (pages []uint32, known bool)
}

// WAL is what a backup needs of the archive while it runs.
type WAL interface {
	// WaitFor blocks until the archive durably holds everything before lsn on
	// timeline, or ctx ends. Take waits for the backup's start before it reads
	// anything, and for its stop before it returns. WaitFor ignores gaps.
	WaitFor(ctx context.Context, timeline uint32, lsn xlog.LSN) error
	// Covers checks that the archive has all WAL from one LSN to another. Otherwise
	// the error wraps wal.ErrGap. Take checks what its backup needs before it
	// returns.
	Covers(timeline uint32, from, to xlog.LSN) error
	// ChangedPages parses the archived WAL from the LSN from to the LSN to. The
	// error wraps wal.ErrGap if it is not complete.
	ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (Changes, error)
}
