package backup

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// reserveWAL makes the server keep all WAL from now on, by a replication slot
// that ends with conn at the latest. Without it a busy server may recycle WAL
// the backup needs before it has been sent, and the whole backup fails.
func reserveWAL(ctx context.Context, conn *pgconn.PgConn) (slot string, err error) {
	slot = "holdfast_backup_" + strings.ToLower(rand.Text())
	_, err = conn.Exec(ctx, "CREATE_REPLICATION_SLOT "+slot+" TEMPORARY PHYSICAL (RESERVE_WAL)").ReadAll()
	if err != nil {
		return "", fmt.Errorf("reserve WAL: %w", err)
	}
	return slot, nil
}

func releaseWAL(ctx context.Context, conn *pgconn.PgConn, slot string) error {
	if _, err := conn.Exec(ctx, "DROP_REPLICATION_SLOT "+slot).ReadAll(); err != nil {
		return fmt.Errorf("release WAL: %w", err)
	}
	return nil
}
