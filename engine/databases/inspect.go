package databases

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Inspect runs act in a session of the appliance's own role, in the tenant's database or in
// [Maintenance], if the database is available; one that sleeps is woken. act must not execute anything that the tenant
// could have defined. A lock that act would wait for longer than a second is an error.
func (s *Service) Inspect(ctx context.Context, db model.Database, in string, act func(context.Context, *pgx.Conn) error) error {
	return s.inspect(ctx, db, func(ctx context.Context) (*pgx.Conn, error) { return s.Instances.Connect(ctx, db.ID, in) }, act)
}

// InspectAsOwner runs act in a session of the owner's role in the tenant's database, with no
// more rights than that role.
func (s *Service) InspectAsOwner(ctx context.Context, db model.Database, act func(context.Context, *pgx.Conn) error) error {
	return s.inspect(ctx, db, func(ctx context.Context) (*pgx.Conn, error) { return s.Instances.ConnectLocal(ctx, db.ID) }, act)
}

func (s *Service) inspect(
	ctx context.Context, db model.Database, connect func(context.Context) (*pgx.Conn, error), act func(context.Context, *pgx.Conn) error,
) error {
	return s.awake(db, func() error {
		ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
		defer cancel()
		conn, err := connect(ctx)
		if err != nil {
			return ServerFailed(fmt.Errorf("connect to database: %w", err))
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if _, err := conn.Exec(ctx, "SET lock_timeout = 1000"); err != nil {
			return ServerFailed(err)
		}
		return ServerFailed(explainBusy(act(ctx, conn)))
	})
}

// awake runs act while a database that is available cannot fall asleep; one that sleeps is woken.
func (s *Service) awake(db model.Database, act func() error) error {
	if err := s.RefuseUnavailable(db); err != nil {
		return err
	}
	release, err := s.Awaken(db, false)
	if err != nil {
		return err
	}
	defer release()
	return act()
}

// explainBusy tells a client that something holds what it wants to see.
func explainBusy(err error) error {
	if _, busy := postgres.StatementFault(err); busy {
		return &model.Error{Code: model.CodeConflict, Message: "a table of this database is held by another session, or this took too long; " +
			"try again, and see which sessions block others under `locks`", Err: err}
	}
	return err
}
