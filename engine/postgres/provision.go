package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Provision makes the tenant's database, roles and passwords what t says, in
// one transaction: of a prepared directory, whose names it changes, or of a restored
// directory, under whatever names. It is idempotent. conn is the superuser's,
// in the database postgres; nothing the tenant could have made is executed.
// The tenant's database must have no sessions when its name changes; those that
// have changed a role or the database and not committed end.
func Provision(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	now, err := present(ctx, conn)
	var statements []string
	if err == nil {
		statements, err = t.provisioning(now)
	}
	if err == nil {
		err = runAlone(ctx, conn, statements)
	}
	if err == nil {
		err = t.prepareDatabase(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	return nil
}

// names are what a tenant's database and roles are called.
type names struct{ database, owner, readOnly string }

// present finds the tenant in an instance: there is one database that is not
// PostgreSQL's own, its owner is the owner, and the other role is marked.
// Whether the database is a template is not asked: its owner decides that.
func present(ctx context.Context, conn *pgx.Conn) (names, error) {
	var n names
	err := conn.QueryRow(ctx, `select d.datname, pg_get_userbyid(d.datdba), r.rolname
		from pg_database d, pg_roles r
		where d.datname not in ('postgres', 'template0', 'template1')
		and shobj_description(r.oid, 'pg_authid') = $1
		order by d.oid limit 1`, readOnlyMark).Scan(&n.database, &n.owner, &n.readOnly)
	if errors.Is(err, pgx.ErrNoRows) {
		return n, errors.New("the instance has no tenant: it was not made from a prepared data directory")
	}
	if err != nil {
		return n, fmt.Errorf("look for the tenant: %w", err)
	}
	return n, nil
}

// provisioning are the statements that lead from the present names to t.
func (t Tenant) provisioning(now names) ([]string, error) {
	statements, err := t.renames(now)
	if err != nil {
		return nil, err
	}
	credentials, err := t.credentials()
	if err != nil {
		return nil, err
	}
	statements = append(statements, t.grants()...)
	statements = append(statements, dumperRole(t.Database)...)
	statements = append(statements, superuserSettings)
	statements = append(statements, t.loginSettings()...)
	return append(statements, credentials...), nil
}

// renames changes the names that differ. The two roles may swap names, so the
// read-only one steps aside.
func (t Tenant) renames(now names) ([]string, error) {
	if t.Owner == t.ReadOnly {
		return nil, fmt.Errorf("the roles have one name: %q", t.Owner)
	}
	var statements []string
	rename := func(kind, from, to string) {
		if from != to {
			statements = append(statements, "ALTER "+kind+" "+quoteName(from)+" RENAME TO "+quoteName(to))
		}
	}
	if t.Owner == now.readOnly || t.ReadOnly == now.owner {
		const aside = "holdfast_renaming"
		rename("ROLE", now.readOnly, aside)
		now.readOnly = aside
	}
	rename("ROLE", now.owner, t.Owner)
	rename("ROLE", now.readOnly, t.ReadOnly)
	rename("DATABASE", now.database, t.Database)
	return statements, nil
}

// superuserSettings keep an owner from locking the superuser out by settings of
// the database: a library to load that does not exist ends every
// session at its start. A role's settings come before a database's; taken from
// this session, in the database postgres, they are the server's own. They stand
// here and not in sessionSettings because not every major knows them all.
const superuserSettings = `DO $$ DECLARE s text; BEGIN
	FOR s IN SELECT name FROM pg_settings WHERE name IN ('local_preload_libraries', 'transaction_timeout') LOOP
		EXECUTE format('ALTER ROLE ` + Superuser + ` SET %I FROM CURRENT', s);
	END LOOP; END $$`

// grants are the privileges on the database: all for the owner, CONNECT for the
// read-only role, none for others. Settings of the database by which an owner has
// locked out other roles or itself are reset. What the
// read-only role reads in the database is in [readerPrivileges].
func (t Tenant) grants() []string {
	d, o, r := quoteName(t.Database), quoteName(t.Owner), quoteName(t.ReadOnly)
	return []string{
		"ALTER DATABASE " + d + " WITH IS_TEMPLATE false ALLOW_CONNECTIONS true CONNECTION LIMIT -1",
		"REVOKE ALL ON DATABASE " + d + " FROM PUBLIC, " + r,
		"GRANT ALL ON DATABASE " + d + " TO " + o,
		"GRANT CONNECT ON DATABASE " + d + " TO " + r,
	}
}
