package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// object is a relation of the source and its name, as SQL.
type object struct {
	oid  uint32
	name string
}

// misnamed returns the oids of the objects whose name now refers to something else, or that no longer hold data of
// their own: a table without rows may be turned into a view. It reads the present, not the snapshot.
func misnamed(ctx context.Context, conn *pgx.Conn, objects []object) ([]uint32, error) {
	oids, names := make([]string, len(objects)), make([]string, len(objects))
	for i, o := range objects {
		oids[i], names[i] = fmt.Sprint(o.oid), o.name
	}
	return list(ctx, conn, "compare names", pgx.RowTo[uint32], `select x.oid from unnest($1::text[]::oid[], $2::text[]) x (oid, name)
		where to_regclass(x.name)::oid is distinct from x.oid or pg_relation_filenode(x.oid) is null`, oids, names)
}

// list returns the rows of a query. The error begins with what.
func list[T any](ctx context.Context, conn *pgx.Conn, what string, as pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, _ := conn.Query(ctx, query, args...) // the rows have the error
	all, err := pgx.CollectRows(rows, as)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

// errReplaced says that the table's name now refers to another object.
var errReplaced = errors.New("it was dropped or replaced in the source during the import")

// lockNamed locks a table in a session with the source and checks that its name still refers to it. The COPY that
// follows accepts only a table, and runs no code of its owner.
func lockNamed(ctx context.Context, conn *pgx.Conn, t table) error {
	if _, err := conn.Exec(ctx, "lock table only "+t.sanitized()+" in access share mode"); err != nil {
		return err
	}
	others, err := misnamed(ctx, conn, []object{{t.oid, t.sanitized()}})
	if err == nil && len(others) > 0 {
		err = errReplaced
	}
	return err
}
