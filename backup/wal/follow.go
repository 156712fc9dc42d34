package wal

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/ctxio"
)

const (
	// flushDelay is the delay from a WAL write to the next poll of the flush position. It doubles with each poll
	// until the write is flushed.
	flushDelay = time.Millisecond
	// pollInterval is the interval of polls while the server writes. Polling for each of thousands of commits per
	// second would take CPU time from the server. The archive lags by at most this plus the time of one poll: it
	// should have 99 of 100 commits within 25 ms.
	pollInterval = 20 * time.Millisecond
	// idlePoll is the interval of polls of a server that writes nothing.
	idlePoll = time.Second
	// unwatchedPoll replaces idlePoll where writes cannot be watched.
	unwatchedPoll = 50 * time.Millisecond
	// queryTimeout bounds the server's response time.
	queryTimeout = 60 * time.Second

	// pieceSize is the maximum size of a read of WAL.
	pieceSize = 128 << 10
	// maxUnsynced is the maximum amount of WAL written between two syncs.
	maxUnsynced = 4 << 20
)

// follower archives the WAL of one timeline as the server flushes it.
type follower struct {
	r     *Receiver
	conn  *pgx.Conn
	from  source
	watch *dirWatch
	buf   []byte

	end      xlog.LSN    // end of the timeline
	slot     xlog.LSN    // restart_lsn of the slot
	baseline walPosition // the poll whose time is to become restorable
}

// run receives until an error. At the end of the timeline it returns nil.
func (f *follower) run(ctx context.Context) error {
	defer f.from.close()
	defer f.watch.close()
	again := flushDelay
	var slotSeen time.Time
	for f.r.writer.pos < f.end {
		began := time.Now()
		if began.Sub(slotSeen) > slotPoll {
			if err := f.pollSlot(ctx); err != nil {
				return err
			}
			slotSeen = began
		}
		now, err := pollPosition(ctx, f.conn)
		if err != nil {
			return err
		}
		f.r.seen = time.Now()
		f.r.tracker.change(func(s *Status) { s.State = StateStreaming })
		took, err := f.take(ctx, now)
		if err != nil {
			return err
		}
		if took {
			if err := f.advance(ctx); err != nil {
				return err
			}
			again = flushDelay
			if err := ctxio.Sleep(ctx, pollInterval-time.Since(began)); err != nil {
				return err
			}
			continue
		}
		limit := idlePoll
		switch newly, err := f.watch.arm(); {
		case err != nil:
			limit = unwatchedPoll
		case newly:
			continue // something may have been written before the watch was armed
		}
		f.buf = nil // save memory: each database has a follower
		if now.inserted > now.flushed {
			limit = min(limit, again)
			again = min(2*again, idlePoll)
		}
		select {
		case <-time.After(limit):
		case <-f.watch.written:
			again = flushDelay
			err = ctxio.Sleep(ctx, flushDelay)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take archives the WAL that was flushed at a poll.
func (f *follower) take(ctx context.Context, now walPosition) (took bool, err error) {
	w, end := f.r.writer, min(now.flushed, f.end)
	for w.pos < end {
		if ctx.Err() != nil {
			return took, context.Cause(ctx)
		}
		f.r.tracker.change(func(s *Status) { s.Backlog, w.since = int64(end-w.pos), s.RestorableTo })
		if f.buf == nil {
			f.buf = make([]byte, pieceSize)
		}
		if err := copyWAL(w, &f.from, f.buf, min(end, w.pos+maxUnsynced)); err != nil {
			return took, err
		}
		durable, commits, err := w.Sync()
		if err != nil {
			return took, err
		}
		f.r.tracker.durable(f.from.timeline, durable, commits, time.Now())
		took = true
	}
	f.updateRestorable(now)
	return took, nil
}

// copyWAL appends WAL from the server's files up to a position.
func copyWAL(w *Writer, from *source, buf []byte, to xlog.LSN) error {
	for w.pos < to {
		n, err := from.read(buf[:min(to-w.pos, xlog.LSN(len(buf)))], w.pos)
		if err != nil {
			return err
		}
		if err := w.Append(w.pos, buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// updateRestorable derives the time up to which every commit is archived. A commit takes its timestamp before its
// WAL position, at most a moment before: what was committed by the time of a poll is flushed at a poll half a second later. Commits
// are rare where a server writes nothing, or much in one transaction or a vacuum. The server flushes whole pages, so the
// last record may be incomplete; its effects are then not committed.
func (f *follower) updateRestorable(now walPosition) {
	if now.at.Sub(f.baseline.at).Abs() > idlePoll/2 { // the clock may be set back
		sure := f.baseline.at
		f.baseline = now
		if now.flushed <= f.r.writer.pos && !sure.IsZero() {
			f.r.tracker.change(func(s *Status) { s.restorable(sure) })
		}
	}
	f.r.tracker.change(func(s *Status) { s.Backlog = max(0, int64(now.flushed)-int64(f.r.writer.pos)) })
}

// advance lets the server remove archived segments.
func (f *follower) advance(ctx context.Context) error {
	whole := f.r.writer.whole()
	if uint64(whole)/f.from.size == uint64(f.slot)/f.from.size || whole < f.slot {
		return nil
	}
	if err := advanceSlot(ctx, f.conn, f.r.o.Slot, whole); err != nil {
		return err
	}
	f.slot = whole
	return nil
}

// slotPoll is the interval of polls of the slot's state.
const slotPoll = 10 * time.Second

// errSlot means that the slot no longer reserves WAL. The next session replaces it, and continues at the end of the
// archive if the server still has that WAL.
var errSlot = errors.New("the replication slot is gone, or has lost WAL")

// pollSlot updates the slot in the status.
func (f *follower) pollSlot(ctx context.Context) error {
	slot, err := readSlot(ctx, f.conn, f.r.o.Slot)
	if err != nil {
		return err
	}
	f.r.tracker.change(func(s *Status) { s.SlotState = slot.state })
	if !slot.reserves() {
		return errSlot
	}
	return nil
}
