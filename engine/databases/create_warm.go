package databases

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// takeWarm returns a warm server whose process runs, if there is one.
func (s *Service) takeWarm() (warmServer, bool) {
	for {
		w, ok := s.warm.take()
		if !ok {
			return w, false
		}
		if state, _, _ := s.Instances.Status(w.id); state == postgres.StateRunning {
			return w, true
		}
		s.core.Background(func(context.Context) {
			if err := s.removeWarm(w); err != nil {
				s.core.Log.Error("remove a warm server that died", "error", err)
			}
		})
	}
}

// handOut turns a warm server into the database of a record that has its id and its
// port. If the server fails, the database is built from a prepared directory.
func (s *Service) handOut(ctx context.Context, db model.Database, w warmServer) (model.Database, error) {
	provisioned, err := s.convert(ctx, db, w)
	if err == nil {
		db.Provisioned = provisioned
		return db, nil
	}
	if ctx.Err() != nil {
		return db, err
	}
	s.core.Log.Warn("a warm server failed as it was handed out: building another", "database", db.ID, "error", err)
	if err := s.StopInstance(ctx, db.ID); err != nil {
		return db, err
	}
	if err := os.RemoveAll(s.DatabaseDirectory(db.ID)); err != nil {
		return db, fmt.Errorf("remove a warm server: %w", err)
	}
	return s.BuildDatabase(ctx, db)
}

// convert gives a warm server the rules, names and passwords of its database. The
// note goes first: from now on the directory belongs to the record.
func (s *Service) convert(ctx context.Context, db model.Database, w warmServer) (provisioned string, err error) {
	if err := s.removeNote(w); err != nil {
		return "", err
	}
	spec, err := s.Spec(ctx, db)
	if err != nil {
		return "", err
	}
	keepDefaults(spec.Config.Settings, db, spec.Dir)
	conn, err := s.Instances.Assign(ctx, spec, w.loaded)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return s.provisionPrepared(ctx, conn, db)
}

// provisionPrepared gives an instance made from a prepared directory the names and passwords of its database, and returns
// the position in the WAL after that.
func (s *Service) provisionPrepared(ctx context.Context, conn *pgx.Conn, db model.Database) (provisioned string, err error) {
	tenant, err := s.tenant(db)
	if err == nil {
		err = postgres.ProvisionPrepared(ctx, conn, tenant)
	}
	if err == nil {
		err = conn.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&provisioned)
	}
	return provisioned, err
}
