package databases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// rlsTimeout bounds a query in a tenant's database.
const rlsTimeout = 15 * time.Second

// RLSGet returns every table of the database dbname with its row-level security.
func (s *Service) RLSGet(ctx context.Context, call *model.Call, id, dbname string) ([]postgres.Table, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	var tables []postgres.Table
	err = s.InspectNamed(ctx, db, dbname, func(ctx context.Context, conn *pgx.Conn) (err error) {
		tables, err = postgres.Tables(ctx, conn)
		return err
	})
	switch {
	case errors.Is(err, postgres.ErrTableBusy):
		err = model.Errorf(model.CodeConflict, "a table of this database is held by another session; try again when that has ended")
	case errors.Is(err, postgres.ErrManyTables):
		err = model.Errorf(model.CodeConflict, "%v in this database, too many to list; pg_class and pg_policies have them", err)
	}
	return tables, err
}

// RLSChange turns row-level security of one table on or off.
type RLSChange struct {
	Schema  string // "" means public
	Table   string
	Enabled bool
	Force   *bool // nil leaves it unchanged
}

// RLSSet applies the change and returns the changed table.
func (s *Service) RLSSet(ctx context.Context, call *model.Call, id string, in RLSChange) (postgres.Table, error) {
	if in.Schema == "" {
		in.Schema = "public"
	}
	for field, name := range map[string]string{"schema": in.Schema, "table": in.Table} {
		if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return postgres.Table{}, model.Invalid(field, "must be the name of one, as PostgreSQL stores it")
		}
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return postgres.Table{}, err
	}
	db, release, err := s.claimAvailable(call, id, "a change of row-level security")
	if err != nil {
		return postgres.Table{}, err
	}
	defer release()
	call.Note("table", in.Schema+"."+in.Table)
	call.Note("enabled", fmt.Sprint(in.Enabled))
	var table postgres.Table
	err = s.inTenantDatabase(context.WithoutCancel(ctx), db, func(ctx context.Context, conn *pgx.Conn) (err error) {
		table, err = postgres.SetRLS(ctx, conn, in.Schema, in.Table, in.Enabled, in.Force)
		return err
	})
	if err != nil {
		return table, in.explain(err)
	}
	return table, s.core.Change(call, func(*meta.Tx) error { return nil })
}

func (in RLSChange) explain(err error) error {
	switch {
	case errors.Is(err, postgres.ErrNoTable):
		return model.Errorf(model.CodeNotFound, "no table %q in schema %q of this database", in.Table, in.Schema)
	case errors.Is(err, postgres.ErrForeignTable):
		return model.Invalid("table", "%q is a foreign table, which PostgreSQL has no row-level security for", in.Table)
	case errors.Is(err, postgres.ErrTableBusy):
		return model.Errorf(model.CodeConflict, "the table %q is held by another session; try again when that has ended", in.Table)
	default:
		return ServerFailed(err)
	}
}

// inTenantDatabase runs act with the appliance's own role in the tenant's
// database. act must not execute anything that the tenant could have defined.
func (s *Service) inTenantDatabase(ctx context.Context, db model.Database, act func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, rlsTimeout)
	defer cancel()
	conn, err := s.Instances.Connect(ctx, db.ID, db.Name)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return act(ctx, conn)
}
