package wal

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// skipGap gives up the WAL the server does not have any more: it makes the slot
// anew, records the gap up to where the slot begins, and says so.
func (r *Receiver) skipGap(ctx context.Context, id identity, cause error) error {
	conn, err := r.o.Replication(ctx)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	defer context.AfterFunc(ctx, func() { conn.Conn().SetDeadline(time.Unix(1, 0)) })()
	reserved, err := renewSlot(ctx, conn, r.o.Slot)
	if err != nil {
		return err
	}
	gap := Gap{Timeline: id.timeline, To: LSN(uint64(reserved) &^ (id.segmentSize - 1)), At: time.Now().UTC(), Reason: cause.Error()}
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

// watchEvery is how often the server is asked how its slot is.
const watchEvery = 10 * time.Second

// watchSlot keeps the status's part about the slot.
func (r *Receiver) watchSlot(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		if err := r.lookAtSlot(ctx); err != nil {
			r.o.Logger.Debug("WAL receiver cannot look at its slot", "incarnation", r.o.Incarnation, "err", err) // the stream tells
		}
		select {
		case <-ticker.C:
		case <-r.look:
		case <-ctx.Done():
			return
		}
	}
}

// lookAtSlot asks for the slot's wal_status ("missing" when there is no slot),
// safe_wal_size, and whether commits wait for who reads it.
func (r *Receiver) lookAtSlot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	conn, err := r.o.SQL(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	state, safe, synchronous := "missing", int64(-1), false
	err = conn.QueryRow(ctx, `
		select coalesce(s.wal_status, ''), coalesce(s.safe_wal_size, -1), coalesce(r.sync_state <> 'async', false)
		from pg_catalog.pg_replication_slots s left join pg_catalog.pg_stat_replication r on r.pid = s.active_pid
		where s.slot_name = $1`, r.o.Slot).Scan(&state, &safe, &synchronous)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	r.ledger.change(func(s *Status) { s.SlotState, s.SafeBytes, s.Synchronous = state, safe, synchronous })
	return nil
}
