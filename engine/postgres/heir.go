package postgres

import "fmt"

// What a role with few rights has made must never become the owner's: PostgreSQL runs code as the owner of what it is part
// of, and not only where somebody needs a privilege to execute it. Autovacuum and ANALYZE compute the expressions of indexes
// as the table's owner, and a trigger calls a SECURITY DEFINER function for everybody who changes its table. So each such
// role has an heir of its own: a role without privileges that cannot log in, and of which the owner is a member.
// The owner may read, change, take and drop what belongs to the heir; its code runs without any rights. There is not one
// heir for all, because the code of one role would run with rights on what another has left.
//
// The oid of the role names its heir, so that an attempt after an interrupted one finds the same, and a later role of the same
// name has another.
const (
	heirPrefix = "holdfast_left_"
	heirMark   = "holdfast: left by the role "
)

// emptyHeirs is the query of the heirs that own nothing any more.
const emptyHeirs = `SELECT rolname FROM pg_roles r WHERE starts_with(shobj_description(oid, 'pg_authid'), '` + heirMark + `')
	AND NOT EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = r.oid AND deptype = 'o')`

// giveToHeir returns the statement, run in the tenant's database, that gives what a role owns there to its heir, which it makes
// if there is something. If the role had the owner's access, the owner is the heir.
//
// A check of a foreign key runs as the owner of the table that it reads, and needs USAGE on its schema.
func (t Tenant) giveToHeir(role string) string {
	return fmt.Sprintf(`DO $$ DECLARE role regrole := %[1]s; owner regrole := %[2]s; heir name := '%[3]s' || role::oid; s regnamespace; BEGIN
	IF `+hadOwner+` THEN
		EXECUTE format('REASSIGN OWNED BY %%s TO %%s', role, owner);
		RETURN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = role AND deptype = 'o'
		AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN RETURN; END IF;
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = heir) THEN
		EXECUTE format('CREATE ROLE %%I %[4]s', heir);
		EXECUTE format('COMMENT ON ROLE %%I IS %%L', heir, %[5]s);
	END IF;
	EXECUTE format('GRANT %%I TO %%s', heir, owner)
		|| CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET FALSE' ELSE '' END;
	EXECUTE format('REASSIGN OWNED BY %%s TO %%I', role, heir);
	FOR s IN SELECT DISTINCT relnamespace FROM pg_constraint JOIN pg_class c ON c.oid IN (conrelid, confrelid)
		WHERE contype = 'f' AND pg_get_userbyid(relowner) = heir AND NOT has_schema_privilege(heir, relnamespace, 'USAGE') LOOP
		EXECUTE format('GRANT USAGE ON SCHEMA %%s TO %%I', s, heir);
	END LOOP; END $$`, quoteLiteral(quoteName(role)), quoteLiteral(quoteName(t.Owner)), heirPrefix, closedRole, quoteLiteral(heirMark+role))
}
