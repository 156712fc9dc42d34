package wal

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

const (
	// gather is how long after a write to the WAL the server is asked how far it
	// has flushed. If it has not yet, it is asked again, each time after twice as
	// long.
	gather = time.Millisecond
	// rest is from one look that found something to the next: to look for each of
	// thousands of commits a second would take the processors from the server
	// that makes them. It is what the archive is behind at most, but for the time
	// one look takes: 99 of 100 commits are to be in it within 25 ms.
	rest = 20 * time.Millisecond
	// pingEvery is how often a server that writes nothing is asked whether there
	// is nothing.
	pingEvery = time.Second
	// unwatched is that where the system does not tell of writes.
	unwatched = 50 * time.Millisecond
	// silence is how long a server may take to answer.
	silence = 60 * time.Second

	// pieceSize is how much WAL is read at once, and maxUnsynced how much is
	// written between two syncs.
	pieceSize   = 128 << 10
	maxUnsynced = 4 << 20
)

// follower takes the WAL of one timeline as the server flushes it.
type follower struct {
	r     *Receiver
	conn  *pgx.Conn
	from  source
	alarm *alarm
	buf   []byte

	end   xlog.LSN // of the timeline
	slot  xlog.LSN // where the slot was advanced to
	quiet sight
}

// run returns nil at the end of the timeline.
func (f *follower) run(ctx context.Context) error {
	defer f.from.close()
	defer f.alarm.close()
	again := gather
	var slotSeen time.Time
	for f.r.writer.pos < f.end {
		began := time.Now()
		if began.Sub(slotSeen) > watchEvery {
			if err := f.lookAtSlot(ctx); err != nil {
				return err
			}
			slotSeen = began
		}
		now, err := look(ctx, f.conn)
		if err != nil {
			return err
		}
		f.r.seen = time.Now()
		f.r.ledger.change(func(s *Status) { s.State = StateStreaming })
		took, err := f.take(ctx, now)
		if err != nil {
			return err
		}
		if took {
			if err := f.advance(ctx); err != nil {
				return err
			}
			again = gather
			if err := sleep(ctx, rest-time.Since(began)); err != nil {
				return err
			}
			continue
		}
		limit := pingEvery
		switch fresh, err := f.alarm.set(); {
		case err != nil:
			limit = unwatched
		case fresh:
			continue // for what was written before it was set
		}
		f.buf = nil // there is a follower for every database
		if now.inserted > now.flushed {
			limit = min(limit, again)
			again = min(2*again, pingEvery)
		}
		select {
		case <-time.After(limit):
		case <-f.alarm.written:
			again = gather
			err = sleep(ctx, gather)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take takes what was flushed, and judges what that says.
func (f *follower) take(ctx context.Context, now sight) (took bool, err error) {
	w, end := f.r.writer, min(now.flushed, f.end)
	for w.pos < end {
		if ctx.Err() != nil {
			return took, context.Cause(ctx)
		}
		f.r.ledger.change(func(s *Status) { s.Backlog = int64(end - w.pos) })
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
		f.r.ledger.durable(f.from.timeline, durable, commits, time.Now())
		took = true
	}
	f.judge(now)
	return took, nil
}

// copyWAL appends what a server's files have up to a position.
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

// judge takes what the server says about itself. A commit takes its time before
// its place in the WAL. Only when the next look, a while later, finds as much
// flushed as the first was nothing committed by the time of the first that is
// not in the archive. The server flushes page by page: that the last record is
// cut off says that what it does has not been committed.
func (f *follower) judge(now sight) {
	switch {
	case now.flushed != f.quiet.flushed:
		f.quiet = now
	case now.at.Sub(f.quiet.at).Abs() > pingEvery/2: // the clock may have been set back
		sure := f.quiet.at
		f.quiet = now
		if now.flushed <= f.r.writer.pos {
			f.r.ledger.change(func(s *Status) { s.restorable(sure) })
		}
	}
	f.r.ledger.change(func(s *Status) { s.Backlog = max(0, int64(now.flushed)-int64(f.r.writer.pos)) })
}

// advance lets the server remove the segments that are in the archive.
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

// watchEvery is how often the server is asked how its slot is.
const watchEvery = 10 * time.Second

// errSlot is a slot that reserves nothing any more. The next session makes it
// anew, and goes on where the archive ends if that is still there.
var errSlot = errors.New("the replication slot is gone, or has lost WAL")

// lookAtSlot keeps the status's part about the slot.
func (f *follower) lookAtSlot(ctx context.Context) error {
	slot, err := readSlot(ctx, f.conn, f.r.o.Slot)
	if err != nil {
		return err
	}
	f.r.ledger.change(func(s *Status) { s.SlotState, s.SafeBytes = slot.state, slot.safe })
	if !slot.reserves() {
		return errSlot
	}
	return nil
}
