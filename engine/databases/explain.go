package databases

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Explain returns the plan of a statement, which it does not execute, as text. It runs as the
// owner: the planner may evaluate functions of the tenant.
func (s *Service) Explain(ctx context.Context, db model.Database, statement string) (plan string, err error) {
	err = s.InspectAsOwner(ctx, db, func(ctx context.Context, conn *pgx.Conn) (err error) {
		plan, err = postgres.Explain(ctx, conn, statement)
		if fault, busy := postgres.StatementFault(err); fault != "" && !busy {
			return model.Invalid("statement", "PostgreSQL says: %s", fault)
		}
		if errors.Is(err, postgres.ErrPlanTooLong) {
			return model.Invalid("statement", "its plan, or PostgreSQL's error about it, is too long to show: run EXPLAIN with psql")
		}
		return err
	})
	return plan, err
}

// Locks returns the tenants' sessions that wait for locks or are waited for, as a tree. Only a
// caller who may change the database sees their statements, which may hold secrets.
func (s *Service) Locks(ctx context.Context, call *model.Call, id string) (locks []postgres.LockedSession, err error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	if s.IsAsleep(db.ID) {
		return nil, nil // it has no sessions
	}
	err = s.Inspect(ctx, db, db.Name, func(ctx context.Context, conn *pgx.Conn) (err error) {
		locks, err = postgres.Locks(ctx, conn)
		return err
	})
	if !call.Holds(model.ScopeDatabaseUpdate) {
		for i := range locks {
			locks[i].Query = ""
		}
	}
	return locks, err
}
