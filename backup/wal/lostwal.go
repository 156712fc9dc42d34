package wal

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// skipGap abandons WAL that the server no longer has: it recreates the slot, records the gap up to the WAL that the
// new slot reserves, and reports it.
func (r *Receiver) skipGap(ctx context.Context, conn *pgx.Conn, id identity, cause error) error {
	reserved, err := renewSlot(ctx, conn, r.o.Slot)
	if err != nil {
		return err
	}
	gap := Gap{Timeline: id.timeline, To: xlog.LSN(uint64(reserved) &^ (id.segmentSize - 1)), At: time.Now().UTC(), Reason: cause.Error()}
	if _, end, ok := r.writer.Latest(); ok {
		gap.From = end
	} else if known, _ := r.o.Archive.Generation(r.o.Generation); known.Parent != nil {
		gap.From = known.Parent.Fork
	}
	if gap.To <= gap.From {
		return nil // the slot reserves enough after all
	}
	if err := r.writer.AddGap(gap); err != nil {
		return err
	}
	r.o.Logger.Error("WAL is lost: restores to times after the gap need a backup made after it",
		"generation", r.o.Generation, "from", gap.From, "to", gap.To, "err", cause)
	r.o.Lost(gap)
	return nil
}
