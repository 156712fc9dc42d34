package postgres

// readerPrivileges is the statement, run in the tenant's database, that lets the
// read-only role read what the owner has made and will make.
//
// The role has plain privileges instead of pg_read_all_data, which no REVOKE
// limits: its members can read pg_authid, with the password verifiers, and every
// other catalog that PostgreSQL closes to ordinary roles. Databases of older
// versions have that membership; the statement ends it in the same transaction.
//
// The owner is the grantor, so the owner can revoke any of this. Owners who close
// the schema public to PUBLIC do not mean the read-only role, so it has its own
// grant there.
//
// Roles are looked up, so that the text contains no name. The superuser's grants
// execute nothing of the tenant's: event triggers belong to superusers.
const readerPrivileges = `DO $$ DECLARE
	owner regrole := (SELECT datdba FROM pg_database WHERE datname = current_database());
	reader regrole := (SELECT objoid FROM pg_shdescription
		WHERE classoid = 'pg_authid'::regclass AND description = '` + readOnlyMark + `');
	granted text;
BEGIN
	FOREACH granted IN ARRAY ARRAY['SELECT ON TABLES', 'SELECT ON SEQUENCES', 'USAGE ON SCHEMAS'] LOOP
		EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s GRANT %s TO %s', owner, granted, reader);
	END LOOP;
	FOR granted IN
		SELECT format('USAGE ON SCHEMA %I', nspname) FROM pg_namespace WHERE nspowner = owner OR nspname = 'public'
		UNION ALL
		SELECT format('SELECT ON %s %I.%I', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, nspname, relname)
		FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE relowner = owner AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'
	LOOP
		EXECUTE format('GRANT %s TO %s', granted, reader);
	END LOOP;
	IF EXISTS (SELECT FROM pg_auth_members WHERE roleid = 'pg_read_all_data'::regrole AND member = reader) THEN
		EXECUTE format('REVOKE pg_read_all_data FROM %s', reader);
	END IF;
END $$`

// keptDefaults is the statement, run in the tenant's database, that keeps the default
// privileges of [readerPrivileges] from DROP OWNED BY either role, which the role
// itself may run: it removes those that pg_shdepend lists for the role. ALTER DEFAULT
// PRIVILEGES needs no such entry.
const keptDefaults = `DO $$ BEGIN
	SET LOCAL allow_system_table_mods = on;
	DELETE FROM pg_shdepend WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid = 'pg_default_acl'::regclass
		AND objid IN (SELECT a.oid FROM pg_default_acl a JOIN pg_database ON datname = current_database()
			WHERE defaclrole = datdba AND defaclnamespace = 0);
END $$`
