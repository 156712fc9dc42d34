package databases

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Roles with access create make databases beside the tenant's in its server, see engine/postgres/beside.go. Clients name one of
// them by dbname; "" and the tenant's own name mean the tenant's.

// PostgresDatabaseList returns the databases of a server, the tenant's first.
func (s *Service) PostgresDatabaseList(ctx context.Context, call *model.Call, id string) ([]postgres.Database, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	var found []postgres.Database
	err = s.Inspect(ctx, db, Maintenance, func(ctx context.Context, conn *pgx.Conn) (err error) {
		found, err = postgres.Databases(ctx, conn, db.Name)
		return err
	})
	return found, err
}

// InspectNamed is [Service.Inspect] in the database dbname. In one of another encoding, names that
// cannot be shown as UTF-8 come in the bytes of their maker's; act runs again for that.
func (s *Service) InspectNamed(ctx context.Context, db model.Database, dbname string, act func(context.Context, *pgx.Conn) error) error {
	if Beside(db, dbname) == "" {
		return s.Inspect(ctx, db, db.Name, act)
	}
	return s.inspect(ctx, db, func(ctx context.Context) (*pgx.Conn, error) {
		conn, err := s.Instances.ConnectTo(ctx, db.ID, dbname)
		return conn, explainName(db, dbname, err)
	}, func(ctx context.Context, conn *pgx.Conn) error {
		err := act(ctx, conn)
		if !postgres.IsNotUTF8(err) {
			return err
		}
		if _, err := conn.Exec(ctx, "SET client_encoding = SQL_ASCII"); err != nil { // no conversion
			return err
		}
		return act(ctx, conn)
	})
}

// AdmitDumper lets the role of exports connect to the database dbname beside the tenant's, or to the tenant's if dbname is "",
// whatever its owner has revoked. The error wraps [postgres.ErrNoDatabase] or [postgres.ErrDatabaseClosed] if it cannot be exported.
func (s *Service) AdmitDumper(ctx context.Context, db model.Database, dbname string) error {
	if dbname == db.Name { // the tenant's has taken its name
		return explainName(db, dbname, postgres.ErrNoDatabase)
	}
	dbname = cmp.Or(dbname, db.Name)
	return s.Inspect(ctx, db, Maintenance, func(ctx context.Context, conn *pgx.Conn) error {
		return explainName(db, dbname, postgres.AdmitDumper(ctx, conn, dbname))
	})
}

// Beside returns the name that a client gave if it is that of a database beside the tenant's, "" for the tenant's.
func Beside(db model.Database, dbname string) string {
	if dbname == db.Name {
		return ""
	}
	return dbname
}

// explainName tells a client why no session can begin in the database that it named.
func explainName(db model.Database, dbname string, err error) error {
	switch {
	case errors.Is(err, postgres.ErrNoDatabase):
		err = besideError(model.CodeNotFound, err, "dbname: %s has no database %q beside it; the list of its databases names those there are", db.Name, dbname)
	case errors.Is(err, postgres.ErrDatabaseClosed) && dbname == db.Name:
		err = besideError(model.CodeConflict, err, "no session can begin in the database %q: its owner has set CONNECTION LIMIT 0, which a restart takes back", dbname)
	case errors.Is(err, postgres.ErrDatabaseClosed):
		err = besideError(model.CodeConflict, err, "dbname: no session can begin in the database %q: "+
			"its owner has closed it (ALTER DATABASE … ALLOW_CONNECTIONS true CONNECTION LIMIT -1 opens it), or a DROP of it was interrupted", dbname)
	case err != nil && pgconn.Timeout(err):
		err = besideError(model.CodeConflict, err, "dbname: no session began in the database %q in time; try again, and see which sessions hold its catalogs under `locks`", dbname)
	}
	return err
}

func besideError(code model.Code, cause error, format string, args ...any) error {
	explained := model.Errorf(code, format, args...)
	explained.Err = cause
	return explained
}
