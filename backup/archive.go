package backup

import (
	"context"

	"holdfast/backup/wal/xlog"
)

// Changes reports which pages of the files of a data directory changed between two LSNs.
type Changes interface {
	// Pages returns the changed page numbers, ascending, within the file at path (slash-separated, relative to the
	// data directory; a segment such as "base/16384/16385.1" counts its own pages from 0). known is false when the
	// file must be read whole: created, truncated, unlogged, not a relation's main fork, or unknown. Pages is safe
	// for concurrent use.
	Pages(path string) (pages []uint32, known bool)
}

// WAL is the part of the archive that a running backup needs.
type WAL interface {
	// WaitFor blocks until the archive durably holds everything before lsn on
	// timeline, or ctx ends. Take waits for the backup's start before it reads
	// anything, and for its stop before it returns. WaitFor ignores gaps.
	WaitFor(ctx context.Context, timeline uint32, lsn xlog.LSN) error
	// Covers returns an error that wraps wal.ErrGap unless the archive has all WAL between the two LSNs. Take checks
	// the range that its backup needs before it returns.
	Covers(timeline uint32, from, to xlog.LSN) error
	// ChangedPages parses the archived WAL between the two LSNs. The error wraps wal.ErrGap if it is not complete.
	ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (Changes, error)
}
