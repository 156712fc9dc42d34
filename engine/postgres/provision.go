package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Provision brings the tenant's database, roles and passwords in line with t, in
// one transaction. It works on a prepared directory, whose names it changes, and
// on a restored directory, whatever its names. It is idempotent. conn is the
// superuser's, in the database postgres; nothing the tenant could have made is
// executed. If the database's name changes, the tenants' sessions in it are ended;
// the access rules must admit no others. Sessions and prepared transactions with an
// uncommitted change of a role or the database are ended.
func Provision(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	now, err := present(ctx, conn, t.Database)
	var taken []string
	if err == nil && now.database != t.Database {
		taken, err = closeForRename(ctx, conn, now.database, t.Database)
	}
	var statements, replication []string
	if err == nil {
		statements, err = t.provisioning(now)
	}
	if err == nil {
		replication, err = t.replicationRole()
	}
	if err == nil {
		err = runAlone(ctx, conn, slices.Concat(statements, replication, t.clientRoles()))
	}
	if err != nil {
		err = errors.Join(err, reopen(ctx, conn, taken))
	}
	if err == nil {
		err = t.prepareDatabase(ctx, conn)
	}
	if err == nil {
		err = PrepareAccess(ctx, conn, t)
	}
	if err == nil {
		err = FollowClientRoles(ctx, conn, t, "")
	}
	if err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	return nil
}

// ProvisionPrepared is [Provision] for an instance that [CheckPrepared] has checked, or that was started in a prepared
// directory just now, in one round trip. Nobody may replicate it: its server was started without senders.
func ProvisionPrepared(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	statements, err := t.provisioning(preparedNames())
	if err == nil {
		err = runAlone(ctx, conn, statements)
	}
	if err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	return nil
}

// Loaded says what a server runs with: it changes with each start and reload.
type Loaded struct {
	started time.Time // when the postmaster was started
	read    time.Time // when it last read its configuration
}

// CheckPrepared returns an error if the instance is not as it was prepared: it has
// other names or privileges, or a role besides the superuser's can log in. conn is
// the superuser's, just opened.
func CheckPrepared(ctx context.Context, conn *pgx.Conn) (Loaded, error) {
	now, err := present(ctx, conn, preparedDatabase)
	if err != nil {
		return Loaded{}, err
	}
	if now != preparedNames() {
		return Loaded{}, errors.New("the instance has a tenant")
	}
	if is, err := preparedTenant().isPrepared(ctx, conn); err != nil || !is {
		return Loaded{}, errors.Join(errors.New("the instance lacks privileges"), err)
	}
	var open bool
	err = conn.QueryRow(ctx, `select exists (select from pg_authid where rolname <> $1 and (rolcanlogin or rolpassword is not null))`, Superuser).Scan(&open)
	if err != nil || open {
		return Loaded{}, errors.Join(errors.New("the instance has a role that can log in"), err)
	}
	loaded, _, err := loadedIn(ctx, conn)
	return loaded, err
}

// names are the names of a tenant's database and roles.
type names struct{ database, owner, readOnly string }

// preparedNames returns the names in a prepared directory.
func preparedNames() names { return names{preparedDatabase, preparedOwner, preparedReadOnly} }

// present finds the tenant in an instance: the database is the one that is not
// PostgreSQL's own, the owner is its owner, and the other role is marked. It
// ignores whether the database is a template, because the owner decides that. Those
// beside it belong to a group (beside.go), and no role can give them to the owner. A
// superuser of a sandbox may have made others: the one named likely comes first.
func present(ctx context.Context, conn *pgx.Conn, likely string) (names, error) {
	var n names
	err := conn.QueryRow(ctx, `select d.datname, pg_get_userbyid(d.datdba), r.rolname
		from pg_database d, pg_roles r
		where d.`+tenantMade+` and pg_get_userbyid(d.datdba) <> $3
		and shobj_description(r.oid, 'pg_authid') = $1
		order by d.datname <> $2, d.oid limit 1`, readOnlyMark, likely, createGroup).Scan(&n.database, &n.owner, &n.readOnly)
	if errors.Is(err, pgx.ErrNoRows) {
		return n, errors.New("the instance has no tenant: it was not made from a prepared data directory")
	}
	if err != nil {
		return n, fmt.Errorf("look for the tenant: %w", err)
	}
	return n, nil
}

// provisioning returns the statements that lead from the present names to t.
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

// renames returns the statements that change the names that differ. The two roles
// may swap names, so the read-only one gets a temporary name.
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
		const temporary = "holdfast_renaming"
		rename("ROLE", now.readOnly, temporary)
		now.readOnly = temporary
	}
	rename("ROLE", now.owner, t.Owner)
	rename("ROLE", now.readOnly, t.ReadOnly)
	if now.database != t.Database {
		statements = append(statements, makeWay(t.Database))
	}
	rename("DATABASE", now.database, t.Database)
	return statements, nil
}

// closeForRename closes the tenant's database, which [Tenant.grants] opens again, and the one that has its next name, taken:
// neither can be renamed while it has sessions, and some roles could open one at any moment. It refuses those that have
// prepared transactions.
func closeForRename(ctx context.Context, conn *pgx.Conn, now, next string) (taken []string, err error) {
	taken, err = namesIn(ctx, conn, "select datname::text from pg_database where datname = $1", next)
	for _, name := range append(taken, now) {
		if err == nil {
			err = CloseDatabase(ctx, conn, name)
		}
	}
	if err == nil {
		err = refusePrepared(ctx, conn, now, next)
	}
	return taken, err
}

// reopen opens databases that were closed for a rename that failed.
func reopen(ctx context.Context, conn *pgx.Conn, names []string) (err error) {
	for _, name := range names {
		if _, openErr := conn.Exec(ctx, "ALTER DATABASE "+quoteName(name)+" ALLOW_CONNECTIONS true"); openErr != nil {
			err = errors.Join(err, fmt.Errorf("open database: %w", openErr))
		}
	}
	return err
}

// superuserSettings prevents an owner from locking the superuser out by settings
// of the database: a library to load that does not exist ends every session at
// its start. A role's settings override a database's; taken from this session, in
// the database postgres, they are the server's own. They are not in
// sessionSettings because not every major version knows them all.
const superuserSettings = `DO $$ DECLARE s text; BEGIN
	FOR s IN SELECT name FROM pg_settings WHERE name IN ('local_preload_libraries', 'transaction_timeout') LOOP
		EXECUTE format('ALTER ROLE ` + Superuser + ` SET %I FROM CURRENT', s);
	END LOOP; END $$`

// grants returns statements that grant the privileges on the database: all for
// the owner, CONNECT for the read-only role, none for others. They reset settings
// of the database by which an owner has locked out other roles or itself.
// [readerPrivileges] is what the read-only role may read in the database.
func (t Tenant) grants() []string {
	d, o, r := quoteName(t.Database), quoteName(t.Owner), quoteName(t.ReadOnly)
	statements := []string{
		"ALTER DATABASE " + d + " WITH IS_TEMPLATE false ALLOW_CONNECTIONS true CONNECTION LIMIT -1",
		"REVOKE ALL ON DATABASE " + d + " FROM PUBLIC, " + r,
		"GRANT ALL ON DATABASE " + d + " TO " + o,
		"GRANT CONNECT ON DATABASE " + d + " TO " + r,
	}
	if t.Superuser { // as PostgreSQL has it, for the roles that the sandbox's owner makes
		statements = append(statements, "GRANT CONNECT, TEMPORARY ON DATABASE "+d+" TO PUBLIC")
	}
	return statements
}
