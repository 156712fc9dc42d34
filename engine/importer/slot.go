package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// slotBounds limit what a source answers to a replication command.
var slotBounds = bounds{what: "a replication slot, which waits for the transactions that run there", message: largestMessage, bytes: 64 << 20, rows: 100_000, time: 30 * time.Minute}

// subscriberOptions are the settings that a subscriber of PostgreSQL asks for, and the locale of money that it does not ask
// for: values in a form that every server reads.
const subscriberOptions = "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c lc_monetary=C"

// replicate opens a session with the source that takes replication commands. Its error is written for the person who gave
// the source.
func (s Source) replicate(ctx context.Context) (*pgx.Conn, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["replication"] = "database"
	config.RuntimeParams["options"] = strings.TrimSpace(s.options + " " + subscriberOptions)
	conn, err := pgx.ConnectConfig(ctx, config)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
		user := oneLine(quoteName(s.User))
		return nil, model.Invalid(SourceField, "the user %q may not replicate; run at the source as a superuser ALTER ROLE %s REPLICATION; (on Amazon RDS GRANT rds_replication TO %s;)",
			s.User, user, user)
	}
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	expect(conn, slotBounds)
	return conn, nil
}

// makeSlot makes the slot at the source, instead of an earlier one, and puts the session into the slot's snapshot: the
// slot has every change that the snapshot lacks.
func (s *Session) makeSlot(ctx context.Context) error {
	conn, err := s.source.replicate(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if s.follow.made {
		if err := conn.PgConn().Exec(ctx, "DROP_REPLICATION_SLOT "+s.follow.Slot).Close(); err != nil && !isGone(err) {
			return sourceError{fmt.Errorf("drop replication slot: %w", err)}
		}
	}
	s.follow.made = true
	results, err := conn.PgConn().Exec(ctx, "CREATE_REPLICATION_SLOT "+s.follow.Slot+" LOGICAL pgoutput EXPORT_SNAPSHOT").ReadAll()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "53400" {
		return model.Invalid(SourceField, "the server has no free replication slot (%s); drop one that nobody uses, which SELECT * FROM pg_replication_slots; shows, "+
			"or raise max_replication_slots there", oneLine(pg.Message))
	}
	if err != nil {
		return sourceError{fmt.Errorf("make replication slot: %w", err)}
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 3 {
		return sourceError{errors.New("make replication slot: the source answered no slot")}
	}
	s.snapshot = string(results[0].Rows[0][2])
	if err := checkSnapshot(s.snapshot); err != nil {
		return err
	}
	s.account.Say(model.ImportInfo, fmt.Sprintf("made the replication slot %s at the source, which keeps its write-ahead log for the new database from now on", s.follow.Slot))
	return s.enter(ctx, s.conn)
}

// slotPatience is how long a drop waits for the end of the session that reads the slot.
const slotPatience = 5 * time.Second

// DropSlot drops a slot at the source, if it exists.
func DropSlot(ctx context.Context, source Source, slot string) error {
	source.refused = new(atomic.Pointer[model.Error])
	conn, err := source.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for began := time.Now(); ; {
		_, err = conn.Exec(ctx, "select pg_catalog.pg_drop_replication_slot(slot_name) from pg_catalog.pg_replication_slots where slot_name = $1", slot)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pg.Code != "55006" || time.Since(began) > slotPatience { // object_in_use
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// DropStatement returns the statement that drops a slot.
func DropStatement(slot string) string { return "SELECT pg_drop_replication_slot('" + slot + "');" }
