package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// promoteLimit is how long a server may take to become writable.
const promoteLimit = 5 * time.Minute

// Promote ends the recovery of a server that has paused at its target, unless the
// recovery has already ended. It first creates slot, a physical replication slot,
// so that no WAL of the new timeline is removed before it is received. conn is
// the superuser's, in the database postgres.
//
// pg_promote would take up to a second longer: the paused server checks for its
// signal once a second, while resuming wakes it.
func Promote(ctx context.Context, conn *pgx.Conn, slot string) error {
	if _, err := conn.Exec(ctx, "select pg_create_physical_replication_slot($1, true)", slot); err != nil {
		return fmt.Errorf("keep the WAL of the new timeline: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_wal_replay_resume() where pg_is_in_recovery()"); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, promoteLimit, fmt.Errorf("not done within %v", promoteLimit))
	defer cancel()
	for {
		var recovering bool
		if err := conn.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&recovering); err != nil {
			return fmt.Errorf("promote: %w", err)
		}
		if !recovering {
			return nil
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("promote: %w", err)
		}
	}
}
