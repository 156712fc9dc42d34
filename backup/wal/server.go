package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// identity describes the cluster and timeline of a server's WAL.
type identity struct {
	system      uint64
	timeline    uint32
	flushed     xlog.LSN
	segmentSize uint64
}

func identify(ctx context.Context, conn *pgx.Conn) (i identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var system, segmentSize int64
	var flushed, file string
	err = conn.QueryRow(ctx, `
		select system_identifier, flushed::text, pg_catalog.pg_walfile_name(flushed),
			pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))
		from pg_catalog.pg_control_system(), pg_catalog.pg_current_wal_flush_lsn() flushed`).Scan(&system, &flushed, &file, &segmentSize)
	if err != nil {
		return i, fmt.Errorf("identify server: %w", err)
	}
	timeline, _, ok := xlog.ParseSegmentName(file, uint64(segmentSize))
	if !ok {
		return i, fmt.Errorf("identify server: it reports the WAL file %q, of %d bytes", file, segmentSize)
	}
	i = identity{system: uint64(system), timeline: timeline, segmentSize: uint64(segmentSize)}
	i.flushed, err = xlog.ParseLSN(flushed)
	return i, err
}

// ensureSlot returns the position from which a physical slot reserves WAL, creating the slot if necessary. It
// replaces a slot that lost its WAL: PostgreSQL 16 and 17 would accept it and reserve nothing.
func ensureSlot(ctx context.Context, conn *pgx.Conn, slot string) (xlog.LSN, error) {
	s, err := readSlot(ctx, conn, slot)
	if err != nil || s.reserves() {
		return s.from, err
	}
	return renewSlot(ctx, conn, slot)
}

// renewSlot drops the slot if it exists and creates one that reserves WAL from now on.
func renewSlot(ctx context.Context, conn *pgx.Conn, slot string) (xlog.LSN, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	_, err := conn.Exec(ctx, `
		select pg_catalog.pg_drop_replication_slot(slot_name) from pg_catalog.pg_replication_slots where slot_name = $1`, slot)
	if err != nil {
		return 0, fmt.Errorf("drop replication slot that has lost WAL: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_catalog.pg_create_physical_replication_slot($1, true)", slot); err != nil {
		return 0, fmt.Errorf("create replication slot: %w", err)
	}
	s, err := readSlot(ctx, conn, slot)
	if err == nil && !s.reserves() {
		err = fmt.Errorf("the replication slot that was just created reserves nothing: %s", s.state)
	}
	return s.from, err
}

// slotState is a row of pg_replication_slots.
type slotState struct {
	state string   // wal_status; "missing" if there is no slot
	from  xlog.LSN // restart_lsn; 0 = none
}

func (s slotState) reserves() bool { return s.from != 0 && s.state != "lost" }

func readSlot(ctx context.Context, conn *pgx.Conn, slot string) (s slotState, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var from string
	err = conn.QueryRow(ctx, `
		select coalesce(wal_status, ''), coalesce(restart_lsn, '0/0')::text
		from pg_catalog.pg_replication_slots where slot_name = $1`, slot).Scan(&s.state, &from)
	if errors.Is(err, pgx.ErrNoRows) {
		return slotState{state: "missing"}, nil
	}
	if err != nil {
		return s, fmt.Errorf("read replication slot: %w", err)
	}
	s.from, err = xlog.ParseLSN(from)
	return s, err
}

// advanceSlot lets the server remove the WAL before lsn.
func advanceSlot(ctx context.Context, conn *pgx.Conn, slot string, lsn xlog.LSN) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "select pg_catalog.pg_replication_slot_advance($1, $2::text::pg_catalog.pg_lsn)", slot, lsn.String()); err != nil {
		return fmt.Errorf("advance replication slot: %w", err)
	}
	return nil
}

// walPosition is the server's WAL position at a time of its clock.
type walPosition struct {
	at       time.Time // read before the positions
	flushed  xlog.LSN
	inserted xlog.LSN // WAL after flushed may not be in a file yet
}

// positionStatement is the name of the prepared statement.
const positionStatement = "wal_position"

func preparePosition(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	_, err := conn.Prepare(ctx, positionStatement, `
		select pg_catalog.clock_timestamp(), pg_catalog.pg_current_wal_flush_lsn()::text, pg_catalog.pg_current_wal_insert_lsn()::text`)
	if err != nil {
		return fmt.Errorf("prepare to poll the server's WAL position: %w", err)
	}
	return nil
}

func pollPosition(ctx context.Context, conn *pgx.Conn) (s walPosition, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var flushed, inserted string
	if err := conn.QueryRow(ctx, positionStatement).Scan(&s.at, &flushed, &inserted); err != nil {
		return s, fmt.Errorf("poll the server's WAL position: %w", err)
	}
	if s.flushed, err = xlog.ParseLSN(flushed); err != nil {
		return s, err
	}
	s.inserted, err = xlog.ParseLSN(inserted)
	return s, err
}
