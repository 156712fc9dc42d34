package postgres

import (
	"context"

	"holdfast/engine/postgres/extensions"

	"github.com/jackc/pgx/v5"
)

// finish gives a new version of an extension its privileges and hides from dumps
// what an owner could not restore: the comment, the rows, the privileges.
func (c *extensionChange) finish(ctx context.Context, x Extension) error {
	statements := []string{"COMMENT ON EXTENSION " + quoteName(x.Name) + " IS NULL"}
	for _, schema := range x.Makes {
		statements = append(statements, "GRANT USAGE ON SCHEMA "+quoteName(schema)+" TO "+quoteName(c.owner))
	}
	if err := all(ctx, c.conn, statements); err != nil {
		return err
	}
	return c.privileges(ctx, x.Extension)
}

func (c *extensionChange) privileges(ctx context.Context, x extensions.Extension) error {
	write := ""
	if x.KeepsRows {
		write = ", INSERT, UPDATE, DELETE"
	} else if _, err := c.conn.Exec(ctx, "UPDATE pg_extension SET extconfig = NULL, extcondition = NULL WHERE extname = $1", x.Name); err != nil {
		return err
	}
	statements, err := c.grants(ctx, x, write)
	if err != nil {
		return err
	}
	return all(ctx, c.conn, append(statements, "SET LOCAL allow_system_table_mods = on", initialPrivileges(x.Name), "SET LOCAL allow_system_table_mods = off"))
}

// grants returns the statements for the privileges on the extension's members.
func (c *extensionChange) grants(ctx context.Context, x extensions.Extension, write string) ([]string, error) {
	rows, _ := c.conn.Query(ctx, `select format('GRANT EXECUTE ON ROUTINE %s TO %I', p.oid::regprocedure, $2::text)
		from pg_depend d join pg_proc p on d.classid = 'pg_proc'::regclass and d.objid = p.oid
		where d.refclassid = 'pg_extension'::regclass and d.refobjid = (select oid from pg_extension where extname = $1) and d.deptype = 'e'
		and ('*' = any ($3) or p.proname = any ($3))
		union all select format('GRANT SELECT%s ON %s TO %I', case when c.relkind in ('r', 'p') then $5 end, c.oid::regclass, $2::text)
		from pg_depend d join pg_class c on d.classid = 'pg_class'::regclass and d.objid = c.oid
		where d.refclassid = 'pg_extension'::regclass and d.refobjid = (select oid from pg_extension where extname = $1) and d.deptype = 'e'
		and c.relkind in ('r', 'p', 'v', 'm', 'S') and ('*' = any ($3) or c.relname = any ($3))
		union all select format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', p.oid::regprocedure)
		from pg_depend d join pg_proc p on d.classid = 'pg_proc'::regclass and d.objid = p.oid
		where d.refclassid = 'pg_extension'::regclass and d.refobjid = (select oid from pg_extension where extname = $1) and d.deptype = 'e'
		and p.proname = any ($4)`, x.Name, c.owner, append([]string{}, x.Grants...), append([]string{}, x.Revokes...), write)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// initialPrivileges returns the statement that makes the privileges of an
// extension's members those that it came with: pg_dump writes the difference, which
// only a superuser could restore.
func initialPrivileges(name string) string {
	member := " d.refclassid = 'pg_extension'::regclass AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = " + quoteLiteral(name) + ") AND d.deptype = 'e'"
	return `DELETE FROM pg_init_privs i USING pg_depend d WHERE i.classoid = d.classid AND i.objoid = d.objid AND i.objsubid = 0 AND` + member + `;
		INSERT INTO pg_init_privs (objoid, classoid, objsubid, privtype, initprivs)
			SELECT d.objid, d.classid, 0, 'e', coalesce(p.proacl, c.relacl, n.nspacl) FROM pg_depend d
			LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
			LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
			LEFT JOIN pg_namespace n ON d.classid = 'pg_namespace'::regclass AND n.oid = d.objid
			WHERE coalesce(p.proacl, c.relacl, n.nspacl) IS NOT NULL AND` + member
}
