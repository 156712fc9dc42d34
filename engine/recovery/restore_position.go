package recovery

import (
	"context"
	"fmt"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// awaitPosition waits, if WAL is being received, until the archive has the WAL up to a position that the present server of a
// database has written. It returns how far the server has written, 0 if that is not known.
func (s *Service) awaitPosition(ctx context.Context, db model.Database, lsn xlog.LSN) (written xlog.LSN) {
	written, err := s.serverPosition(ctx, db)
	if err != nil {
		if last, err := backup.ReadShutdown(s.databases.DataDirectory(db.ID, db.Generation)); err == nil {
			return last.Checkpoint
		}
		s.core.Log.Warn("how far a server has written is not known", "database", db.ID, "error", err)
		return 0
	}
	if written >= lsn {
		s.awaitStatus(ctx, db.ID, func(status wal.Status) bool { return status.Durable >= lsn })
	}
	return written
}

// serverPosition returns up to where the running server of a database has written WAL.
func (s *Service) serverPosition(ctx context.Context, db model.Database) (xlog.LSN, error) {
	ctx, cancel := context.WithTimeout(ctx, archiveWait)
	defer cancel()
	conn, err := s.databases.Instances.Connect(ctx, db.ID, databases.Maintenance)
	if err != nil {
		return 0, fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var text string
	if err := conn.QueryRow(ctx, "select pg_catalog.pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
		return 0, fmt.Errorf("read the server's position: %w", err)
	}
	return xlog.ParseLSN(text)
}
