package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// EndReadersPrepared rolls back the transactions that roles which only read have
// left prepared for longer than patience. They hold locks and keep VACUUM from
// removing rows, no session or setting ends them, and the owner may not.
func (t Tenant) EndReadersPrepared(ctx context.Context, conn *pgx.Conn, patience time.Duration) error {
	readers := []string{t.ReadOnly}
	for _, r := range t.Roles {
		if r.Access == model.AccessRead {
			readers = append(readers, r.Name)
		}
	}
	err := rollBackWhere(ctx, conn, "owner = any($1) and prepared < clock_timestamp() - make_interval(secs => $2)", readers, patience.Seconds())
	if err != nil {
		return fmt.Errorf("roll back the prepared transactions of roles that only read: %w", err)
	}
	return nil
}

// EndCopiedPrepared rolls back the prepared transactions of a copied database that still has the name of its source, and
// returns their identifiers. PostgreSQL renames no database that has any, and their transaction manager does not know the copy.
// conn is the superuser's.
func (t Tenant) EndCopiedPrepared(ctx context.Context, conn *pgx.Conn) (identifiers []string, err error) {
	now, err := present(ctx, conn, t.Database)
	if err == nil && now.database != t.Database {
		identifiers, err = collect(ctx, conn, "select gid from pg_prepared_xacts order by prepared")
		if err == nil {
			err = rollBackWhere(ctx, conn, "true")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("roll back the prepared transactions of a copy: %w", err)
	}
	return identifiers, nil
}

// RefuseRenamedPrepared returns a conflict if the tenant's database has prepared transactions and another name than t, under
// which it would be provisioned: PostgreSQL does not rename it, and what was acknowledged must not be rolled back. conn is the
// superuser's.
func (t Tenant) RefuseRenamedPrepared(ctx context.Context, conn *pgx.Conn) error {
	now, err := present(ctx, conn, t.Database)
	if err != nil || now.database == t.Database {
		return err
	}
	identifiers, err := collect(ctx, conn, "select gid from pg_prepared_xacts where database = $1 order by prepared", now.database)
	if err != nil {
		return fmt.Errorf("look for prepared transactions: %w", err)
	}
	if len(identifiers) == 0 {
		return nil
	}
	return model.Errorf(model.CodeConflict, "the data that would come back are of a database named %s and have prepared transactions (%s), and PostgreSQL renames no database "+
		"that has any: rename %s back to %s, try again, and commit or roll back what is prepared before you rename it once more",
		now.database, strings.Join(identifiers, ", "), t.Database, now.database)
}

// RefuseRename returns a conflict if prepared transactions keep the tenant's database from getting its name in t, or the
// database that has this name from making way. conn is the superuser's.
func (t Tenant) RefuseRename(ctx context.Context, conn *pgx.Conn) error {
	now, err := present(ctx, conn, t.Database)
	if err != nil || now.database == t.Database {
		return err
	}
	return refusePrepared(ctx, conn, now.database, t.Database)
}

// ErrPrepared is the cause of a conflict: prepared transactions keep a database from being renamed.
var ErrPrepared = errors.New("the database has prepared transactions")

// refusePrepared returns a conflict if one of the databases has prepared transactions, so that PostgreSQL does not rename it.
func refusePrepared(ctx context.Context, conn *pgx.Conn, now, next string) error {
	identifiers, err := collect(ctx, conn, "select format('%L in the database %s', gid, database) from pg_prepared_xacts where database in ($1, $2) order by prepared", now, next)
	if err != nil {
		return fmt.Errorf("look for prepared transactions: %w", err)
	}
	if len(identifiers) == 0 {
		return nil
	}
	return &model.Error{Code: model.CodeConflict, Err: ErrPrepared, Message: fmt.Sprintf(
		"name: PostgreSQL renames no database that has prepared transactions (%s): commit or roll them back first", firstOf(identifiers))}
}
