package wal

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// skipGap gives up the WAL the server does not have any more: it makes the slot
// anew, records the gap up to where the slot begins, and says so.
func (r *Receiver) skipGap(ctx context.Context, conn *pgx.Conn, id identity, cause error) error {
	reserved, err := renewSlot(ctx, conn, r.o.Slot)
	if err != nil {
		return err
	}
	gap := Gap{Timeline: id.timeline, To: xlog.LSN(uint64(reserved) &^ (id.segmentSize - 1)), At: time.Now().UTC(), Reason: cause.Error()}
	if _, end, ok := r.writer.Latest(); ok {
		gap.From = end
	} else if known, _ := r.o.Archive.Incarnation(r.o.Incarnation); known.Parent != nil {
		gap.From = known.Parent.Fork
	}
	if gap.To <= gap.From {
		return nil // the slot reaches back far enough after all
	}
	if err := r.writer.AddGap(gap); err != nil {
		return err
	}
	r.o.Logger.Error("WAL is lost: restores to times from the gap on need a new backup from behind it",
		"incarnation", r.o.Incarnation, "from", gap.From, "to", gap.To, "err", cause)
	r.o.Lost(gap)
	return nil
}
