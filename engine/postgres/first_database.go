package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// HasDatabase reports whether there is a database of that name. conn is the superuser's, in the database postgres.
func HasDatabase(ctx context.Context, conn *pgx.Conn, name string) (found bool, err error) {
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&found); err != nil {
		return false, fmt.Errorf("look for the database %s: %w", name, err)
	}
	return found, nil
}

// dropFirstDatabase drops the database that [CreateBeside] made for a role, unless it is in use: then it stays and is open, like
// the others that roles have made. It is closed before it is checked again, and the logins that were not complete then are waited
// for, so nothing that is made meanwhile is lost. A lock that another transaction holds on it counts as use.
func (t Tenant) dropFirstDatabase(ctx context.Context, conn *pgx.Conn, role string, deadline time.Time) error {
	name := model.Database{Name: t.Database}.FirstDatabase(role)
	if t.isFirstDatabase(name, role) {
		return nil
	}
	unused, err := isUnused(ctx, conn, name, role)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", max(time.Until(deadline), time.Millisecond).Milliseconds()))
	}
	if err != nil {
		return err
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "RESET lock_timeout") }()
	if unused {
		if err := unlessInUse(dropClosed(ctx, conn, name, role, deadline)); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, openDatabases("datname = "+quoteLiteral(name)+" AND NOT datallowconn AND NOT datistemplate", "ALLOW_CONNECTIONS true"))
	return err
}

// isFirstDatabase reports whether another role of t that creates databases has this one as its own.
func (t Tenant) isFirstDatabase(name, except string) bool {
	return slices.ContainsFunc(t.Roles, func(r ClientRole) bool {
		return r.Access == model.AccessCreate && r.Name != except && model.Database{Name: t.Database}.FirstDatabase(r.Name) == name
	})
}

// dropClosed closes a database, and drops it if it is still unused.
func dropClosed(ctx context.Context, conn *pgx.Conn, name, role string, deadline time.Time) error {
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoteName(name)+" WITH ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	if err := awaitLogins(ctx, conn, name, deadline); err != nil {
		return err
	}
	unused, err := isUnused(ctx, conn, name, role)
	if err == nil && unused {
		_, err = conn.Exec(ctx, "DROP DATABASE "+quoteName(name))
	}
	return err
}

// isUnused reports whether nothing of a tenant's is in the database that was made for a role which creates or created databases,
// and nobody is connected to it: DROP waits for the superuser's sessions, which are short. The error is [pgx.ErrNoRows] if
// there is none. All that tenants make has an owner, whom pg_shdepend names; what the superuser owns has none there.
func isUnused(ctx context.Context, conn *pgx.Conn, name, role string) (unused bool, err error) {
	err = conn.QueryRow(ctx, fmt.Sprintf(`select not datistemplate
		and not exists (select from pg_shdepend where dbid = d.oid and deptype = 'o')
		and not exists (select from pg_prepared_xacts where database = datname)
		and not exists (select from pg_stat_activity where datid = d.oid and backend_type = 'client backend' and usename is distinct from '%s')
		from pg_database d join pg_roles r on r.rolname = $2
		where datname = $1 and datdba = to_regrole('%s')
		and (shobj_description(r.oid, 'pg_authid') = '%s' or shobj_description(r.oid, 'pg_authid') like '%%%s')`, Superuser, createGroup, createMark, lostCreate),
		name, role).Scan(&unused)
	return unused, err
}

// awaitLogins waits until no login to a database is in the middle: one holds a lock on it from before it reads whether the
// database is open until its session is known. The error is [ErrLocked] if that lasts longer than [loginGrace].
func awaitLogins(ctx context.Context, conn *pgx.Conn, name string, deadline time.Time) error {
	if end := time.Now().Add(loginGrace); end.Before(deadline) {
		deadline = end
	}
	for {
		var locked bool
		err := conn.QueryRow(ctx, `select exists (select from pg_locks where locktype = 'object' and classid = 'pg_database'::regclass
			and objid = (select oid from pg_database where datname = $1) and pid <> pg_backend_pid())`, name).Scan(&locked)
		switch {
		case err != nil || !locked:
			return err
		case time.Now().After(deadline):
			return ErrLocked
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// unlessInUse returns nil for the errors of a database that others use: their sessions, their locks, or that they drop it.
func unlessInUse(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if errors.Is(err, ErrLocked) || ok && slices.Contains([]string{"55006", "55P03", "3D000"}, pg.Code) { // object_in_use, lock_not_available, invalid_catalog_name
		return nil
	}
	return err
}
