package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// identity is the server's answer to IDENTIFY_SYSTEM, and its segments' size.
type identity struct {
	system      uint64
	timeline    uint32
	flushed     LSN
	segmentSize uint64
}

// ask runs a replication command and returns its first row's columns as text.
func ask(ctx context.Context, conn *pgconn.PgConn, command string) ([]string, error) {
	results, err := conn.Exec(ctx, command).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) == 0 || len(results[0].Rows) == 0 {
		return nil, nil
	}
	var row []string
	for _, column := range results[0].Rows[0] {
		row = append(row, string(column))
	}
	return row, nil
}

func identify(ctx context.Context, conn *pgconn.PgConn) (i identity, err error) {
	row, err := ask(ctx, conn, "IDENTIFY_SYSTEM")
	if err != nil || len(row) < 3 {
		return i, fmt.Errorf("identify server: %w", errors.Join(err, shortAnswer(row, 3)))
	}
	var timeline uint64
	errs := make([]error, 4)
	i.system, errs[0] = strconv.ParseUint(row[0], 10, 64)
	timeline, errs[1] = strconv.ParseUint(row[1], 10, 32)
	i.flushed, errs[2] = ParseLSN(row[2])
	i.timeline = uint32(timeline)
	i.segmentSize, errs[3] = showSegmentSize(ctx, conn)
	if err := errors.Join(errs...); err != nil {
		return i, fmt.Errorf("identify server: %w", err)
	}
	return i, nil
}

func shortAnswer(row []string, want int) error {
	if len(row) < want {
		return fmt.Errorf("the server answered %d columns, not %d", len(row), want)
	}
	return nil
}

// showSegmentSize reads a setting that SHOW gives in whole MB or GB.
func showSegmentSize(ctx context.Context, conn *pgconn.PgConn) (uint64, error) {
	row, err := ask(ctx, conn, "SHOW wal_segment_size")
	if err != nil || len(row) < 1 {
		return 0, errors.Join(err, shortAnswer(row, 1))
	}
	digits := strings.TrimRight(row[0], "kMGB")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the server says its wal_segment_size is %q", row[0])
	}
	switch row[0][len(digits):] {
	case "MB":
		n <<= 20
	case "GB":
		n <<= 30
	default:
		return 0, fmt.Errorf("the server says its wal_segment_size is %q", row[0])
	}
	return n, nil
}

// ensureSlot makes a physical slot that reserves WAL from now on, where none
// reserves any, and returns from where WAL is reserved. One that has lost its
// WAL goes: PostgreSQL 16 and 17 would let it be used, and reserve none for it
// any more.
func ensureSlot(ctx context.Context, conn *pgconn.PgConn, slot string) (LSN, error) {
	at, err := readSlot(ctx, conn, slot)
	if err != nil || at != 0 {
		return at, err
	}
	return renewSlot(ctx, conn, slot)
}

// renewSlot makes a slot anew that reserves WAL from now on.
func renewSlot(ctx context.Context, conn *pgconn.PgConn, slot string) (LSN, error) {
	_, err := ask(ctx, conn, "DROP_REPLICATION_SLOT "+pgx.Identifier{slot}.Sanitize()+" WAIT")
	if pgError := new(pgconn.PgError); err != nil && (!errors.As(err, &pgError) || pgError.Code != undefinedObject) {
		return 0, fmt.Errorf("drop replication slot that has lost WAL: %w", err)
	}
	_, err = ask(ctx, conn, "CREATE_REPLICATION_SLOT "+pgx.Identifier{slot}.Sanitize()+" PHYSICAL RESERVE_WAL")
	if pgError := new(pgconn.PgError); err != nil && (!errors.As(err, &pgError) || pgError.Code != duplicateObject) {
		return 0, fmt.Errorf("create replication slot: %w", err)
	}
	return readSlot(ctx, conn, slot)
}

// readSlot returns from where a slot reserves WAL; 0 when there is no slot, or
// it reserves none.
func readSlot(ctx context.Context, conn *pgconn.PgConn, slot string) (LSN, error) {
	row, err := ask(ctx, conn, "READ_REPLICATION_SLOT "+pgx.Identifier{slot}.Sanitize())
	if err != nil {
		return 0, fmt.Errorf("read replication slot: %w", err)
	}
	if len(row) < 2 || row[1] == "" {
		return 0, nil
	}
	return ParseLSN(row[1])
}

// SQLSTATEs of PostgreSQL's errcodes.txt.
const (
	undefinedFile          = "58P01" // the segment has been removed
	undefinedObject        = "42704" // there is no such slot
	duplicateObject        = "42710"
	notInPrerequisiteState = "55000" // the slot has lost WAL
	objectInUse            = "55006" // an earlier connection still holds the slot
)

// message is what the server sends while it streams.
type message struct {
	data  []byte // WAL at start; nil for a keepalive
	start LSN
	end   LSN // of the server's WAL: flushed (with data), sent (with a keepalive)
	sent  time.Time
	reply bool // the server wants a status at once
}

func parseMessage(b []byte) (m message, err error) {
	switch {
	case len(b) >= 25 && b[0] == 'w':
		m.start, m.end = LSN(binary.BigEndian.Uint64(b[1:])), LSN(binary.BigEndian.Uint64(b[9:]))
		m.sent, m.data = fromMicros(int64(binary.BigEndian.Uint64(b[17:]))), b[25:]
	case len(b) >= 18 && b[0] == 'k':
		m.end, m.sent = LSN(binary.BigEndian.Uint64(b[1:])), fromMicros(int64(binary.BigEndian.Uint64(b[9:])))
		m.reply = b[17] != 0
	default:
		return m, fmt.Errorf("the server sent a message of an unknown kind, %d bytes", len(b))
	}
	return m, nil
}

// statusUpdate is a Standby status update, as CopyData. All before durable is
// written and synced here; nothing is ever applied.
func statusUpdate(durable LSN, now time.Time, reply bool) []byte {
	b := make([]byte, 0, 40)
	b = append(b, 'd', 0, 0, 0, 4+34, 'r')
	for range 2 { // written, flushed
		b = binary.BigEndian.AppendUint64(b, uint64(durable))
	}
	b = binary.BigEndian.AppendUint64(b, 0) // applied
	b = binary.BigEndian.AppendUint64(b, uint64(toMicros(now)))
	if reply {
		return append(b, 1)
	}
	return append(b, 0)
}

// startReplication asks for WAL. streaming is false when the timeline ends at
// from already; the answer is the next one then, as at the end of a stream.
func startReplication(conn *pgconn.PgConn, slot string, timeline uint32, from LSN) (streaming bool, next uint32, err error) {
	conn.Frontend().SendQuery(&pgproto3.Query{String: fmt.Sprintf("START_REPLICATION SLOT %s PHYSICAL %v TIMELINE %d",
		pgx.Identifier{slot}.Sanitize(), from, timeline)})
	if err := conn.Frontend().Flush(); err != nil {
		return false, 0, fmt.Errorf("ask for WAL: %w", err)
	}
	for {
		msg, err := conn.ReceiveMessage(context.Background())
		if err != nil {
			return false, 0, fmt.Errorf("ask for WAL: %w", err)
		}
		switch msg := msg.(type) {
		case *pgproto3.CopyBothResponse:
			return true, 0, nil
		case *pgproto3.ErrorResponse:
			err := pgconn.ErrorResponseToPgError(msg)
			return false, 0, fmt.Errorf("ask for WAL from %v on timeline %d: %w", from, timeline, err)
		case *pgproto3.DataRow:
			next, err = nextTimeline(msg.Values)
			if err != nil {
				return false, 0, err
			}
		case *pgproto3.ReadyForQuery:
			if next == 0 {
				return false, 0, errors.New("the server neither streams nor names the next timeline")
			}
			return false, next, nil
		}
	}
}

func nextTimeline(values [][]byte) (uint32, error) {
	if len(values) < 2 {
		return 0, errors.New("the server answered a row that is not a timeline and an LSN")
	}
	next, err := strconv.ParseUint(string(values[0]), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the server named the next timeline %q", values[0])
	}
	return uint32(next), nil
}
