package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// promoteWait is how long a server may take to become writable, in seconds.
const promoteWait = 300

// Promote ends the recovery of a server that has paused at its target. slot, a
// physical replication slot, is made first, so that no WAL of the new timeline
// goes before somebody has received it. conn is the superuser's, in the database
// postgres.
func Promote(ctx context.Context, conn *pgx.Conn, slot string) error {
	if _, err := conn.Exec(ctx, "select pg_create_physical_replication_slot($1, true)", slot); err != nil {
		return fmt.Errorf("keep the WAL of the new timeline: %w", err)
	}
	var promoted bool
	if err := conn.QueryRow(ctx, "select pg_promote(true, $1)", promoteWait).Scan(&promoted); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	if !promoted {
		return fmt.Errorf("promote: not done within %d s", promoteWait)
	}
	return nil
}
