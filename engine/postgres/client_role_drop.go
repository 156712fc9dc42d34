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

// SetClientRoles makes the roles of t, with the logins that they have there, and takes the login from other ones.
// [PrepareAccess] has made their groups. Open sessions stay open, except those that are changing a role. conn is the
// superuser's, in the database postgres.
func SetClientRoles(ctx context.Context, conn *pgx.Conn, t Tenant) error {
	if err := runAlone(ctx, conn, t.clientRoles()); err != nil {
		return fmt.Errorf("set roles: %w", err)
	}
	return nil
}

// TerminateRole ends the sessions of a role and returns how many it ended, once all of them have ended. It also ends
// logins that were incomplete at the start. The role's login must have changed before. conn is the superuser's, in the
// database postgres.
func TerminateRole(ctx context.Context, conn *pgx.Conn, role string) (int, error) {
	return terminateWhere(ctx, conn, "usename = $2", role)
}

// FollowClientRoles completes what [SetClientRoles] has begun: it drops the roles that t does not have, and takes what
// those made that have lost the owner's access. What they own goes to an heir (heir.go), and their sessions end. It also
// drops the heirs that own nothing any more. The error is ErrLocked if open transactions hold locks on what the role
// named about owns, or there is too much of it: if it was to be dropped, it stays closed. What cannot be done of other
// roles is left to the next time, because no tenant may keep a server from being used. conn is the superuser's, in the
// database postgres.
func FollowClientRoles(ctx context.Context, conn *pgx.Conn, t Tenant, about string) error {
	deadline := time.Now().Add(lockPatience)
	if about == "" {
		deadline = time.Now().Add(lockPatience / 5)
	}
	lost, err := namesIn(ctx, conn, `select rolname from pg_roles where starts_with(shobj_description(oid, 'pg_authid'), $1)
		and (shobj_description(oid, 'pg_authid') like '%' || $2 or shobj_description(oid, 'pg_authid') like '%' || $3)`, clientRoleMark, lostOwner, lostCreate)
	if err != nil {
		return fmt.Errorf("look for roles that had another access: %w", err)
	}
	var errs []error
	for _, r := range t.Roles {
		if slices.Contains(lost, r.Name) {
			errs = append(errs, unlessLocked(r.Name != about, t.takeOwned(ctx, conn, r, deadline)))
		}
	}
	others, err := namesIn(ctx, conn, t.otherClientRoles()+" UNION ALL "+emptyHeirs)
	errs = append(errs, err)
	for _, name := range others {
		errs = append(errs, unlessLocked(name != about, t.dropClientRole(ctx, conn, name, deadline)))
	}
	return errors.Join(errs...)
}

func unlessLocked(ignored bool, err error) error {
	if ignored && errors.Is(err, ErrLocked) {
		return nil
	}
	return err
}

func namesIn(ctx context.Context, conn *pgx.Conn, query string, arguments ...any) ([]string, error) {
	rows, _ := conn.Query(ctx, query, arguments...)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (t Tenant) dropClientRole(ctx context.Context, conn *pgx.Conn, name string, deadline time.Time) error {
	err := t.takeOver(ctx, conn, name, true, deadline)
	if err == nil {
		err = runBriefly(ctx, conn, []string{"DROP ROLE " + quoteName(name)}, deadline)
	}
	if err != nil {
		return fmt.Errorf("drop the role %s: %w", name, asLocked(err))
	}
	return nil
}

// asLocked makes ErrLocked of what a tenant can cause, such as more objects than one transaction can lock, a grant in the
// wrong moment, or a lock on a catalog, which no session gets past.
func asLocked(err error) error {
	_, refused := errors.AsType[*pgconn.PgError](err)
	if refused && !IsGone(err) && !IsFull(err) || pgconn.Timeout(err) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}

// takeOwned takes what a role has made and was granted while it had the owner's access.
func (t Tenant) takeOwned(ctx context.Context, conn *pgx.Conn, r ClientRole, deadline time.Time) error {
	err := t.takeOver(ctx, conn, r.Name, false, deadline)
	if err == nil {
		_, err = conn.Exec(ctx, "COMMENT ON ROLE "+quoteName(r.Name)+" IS "+quoteLiteral(clientRoleMark+string(r.Access)))
	}
	if err != nil {
		return fmt.Errorf("take what the role %s owns: %w", r.Name, asLocked(err))
	}
	return nil
}

// takeOver ends the sessions of a role and gives what it has to its heir. The database that was made for it goes if it is
// empty.
func (t Tenant) takeOver(ctx context.Context, conn *pgx.Conn, role string, entirely bool, deadline time.Time) error {
	if _, err := TerminateRole(ctx, conn, role); err != nil {
		return err
	}
	if err := dropInvalidated(ctx, conn); err != nil {
		return err
	}
	if err := rollBackWhere(ctx, conn, "owner = $1", role); err != nil {
		return err
	}
	databases, err := namesIn(ctx, conn, `select datname::text from pg_database where datname = $1 or oid in (
		select dbid from pg_shdepend where refclassid = 'pg_authid'::regclass and refobjid = $2::regrole) order by 1`, t.Database, quoteName(role))
	for _, database := range databases {
		if err == nil {
			err = inOtherDatabase(ctx, conn, database, func(there *pgx.Conn) error {
				return runBriefly(ctx, there, t.takingOver(role, database, entirely), deadline)
			})
		}
	}
	if err == nil { // last: a role that stays because of a lock keeps its database
		err = t.dropFirstDatabase(ctx, conn, role, deadline)
	}
	return err
}

// takingOver returns the statements that give what a role owns in a database to its heir, and take its privileges:
// entirely also where policies of row-level security name it. In a database beside the tenant's, its group gets it:
// what is the owner's there would lend the owner's rights to those who may use that database.
func (t Tenant) takingOver(role, database string, entirely bool) []string {
	r, quoted := quoteName(role), quoteLiteral(quoteName(role))
	statements := []string{fmt.Sprintf(withoutGrants, quoted)}
	if database == t.Database {
		statements = append(statements, t.giveToHeir(role))
	} else {
		statements = append(statements, makeGroup(model.AccessCreate), "REASSIGN OWNED BY "+r+" TO "+createGroup)
	}
	statements = append(statements, fmt.Sprintf(withoutDefaults, quoted))
	if entirely {
		return append(statements, "DROP OWNED BY "+r)
	}
	return append(statements, fmt.Sprintf(`DO $$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = %s::regrole AND deptype = 'r'
			AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
			DROP OWNED BY %s;
		END IF; END $$`, quoted, r), "GRANT CONNECT ON DATABASE "+quoteName(t.Database)+" TO "+r)
}

// hadOwner is the condition, in PL/pgSQL, that the role had the owner's access.
const hadOwner = "(shobj_description(role, 'pg_authid') = '" + ownerMark + "' OR shobj_description(role, 'pg_authid') LIKE '%%" + lostOwner + "')"

// withoutGrants is the statement that takes others' privileges on what a role owns, unless the role had the owner's
// access: the owner decides who may use what it has left.
const withoutGrants = `DO $$ DECLARE role regrole := %[1]s; g record; BEGIN
	IF ` + hadOwner + ` THEN RETURN; END IF;
	FOR g IN SELECT DISTINCT object, grantee FROM (
		SELECT format('ROUTINE %%s', oid::regprocedure), (aclexplode(coalesce(proacl, acldefault('f', proowner)))).grantee FROM pg_proc WHERE proowner = role
		UNION ALL SELECT format('TABLE %%s', oid::regclass), (aclexplode(relacl)).grantee FROM pg_class WHERE relowner = role AND relkind IN ('r', 'p', 'v', 'm', 'f')
		UNION ALL SELECT format('TABLE %%s', c.oid::regclass), (aclexplode(attacl)).grantee FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relowner = role
	) owned (object, grantee) WHERE grantee <> role LOOP
		EXECUTE format('REVOKE ALL ON %%s FROM %%s CASCADE', g.object, CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END);
	END LOOP; END $$`

// withoutDefaults is the statement that takes a role out of the default privileges that others have set.
// pg_shdepend does not list it in all of them: see keptDefaults.
const withoutDefaults = `DO $$ DECLARE role regrole := %[1]s; d record; BEGIN
	FOR d IN SELECT DISTINCT defaclrole::regrole AS owner, nspname,
			CASE defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'ROUTINES' WHEN 'T' THEN 'TYPES'
				WHEN 'n' THEN 'SCHEMAS' WHEN 'L' THEN 'LARGE OBJECTS' END AS kind
		FROM pg_default_acl a LEFT JOIN pg_namespace n ON n.oid = defaclnamespace, aclexplode(defaclacl) x
		WHERE x.grantee = role AND defaclrole <> role LOOP
		EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %%s', d.owner) || CASE WHEN d.nspname IS NULL THEN '' ELSE format(' IN SCHEMA %%I', d.nspname) END
			|| format(' REVOKE ALL ON %%s FROM %%s', d.kind, role);
	END LOOP; END $$`
