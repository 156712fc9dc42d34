package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// extensionTable is a table of an extension. shipped says that it has rows of the extension's own, such as spatial_ref_sys, which
// are seldom changed.
type extensionTable struct {
	extension, schema, name string
	shipped                 bool
}

func (t extensionTable) String() string {
	return fmt.Sprintf("%s.%s (of the extension %s)", t.schema, t.name, t.extension)
}

// listExtensionTables lists the tables of extensions among those of a FROM clause, which has pg_class as c and pg_namespace as n.
func (s *Session) listExtensionTables(ctx context.Context, from string, args ...any) ([]extensionTable, error) {
	found, err := list(ctx, s.conn, "list tables of extensions", func(row pgx.CollectableRow) (t extensionTable, err error) {
		return t, row.Scan(&t.extension, &t.schema, &t.name, &t.shipped)
	}, `select e.extname::text, n.nspname::text, c.relname::text, exists (
			select from unnest(e.extconfig, e.extcondition) x (relation, condition) where x.relation = c.oid and x.condition <> '')
		from `+from+` and exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
			and d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e') order by 2, 3`, args...)
	if err != nil {
		return nil, sourceError{err}
	}
	return found, nil
}

// isFollowable reports whether a subscription can have the table without failing sooner or later: it exists here, and
// nobody changes it at the source. The owner may not change tables of extensions here.
func (s *Session) isFollowable(t extensionTable) bool {
	return t.shipped && !slices.Contains(s.missing, t.extension)
}

// refuseExtensionTables refuses a publication with tables of extensions that a subscription cannot have, and returns the other
// tables of extensions that it has. tables are those that the copy has.
func (s *Session) refuseExtensionTables(ctx context.Context, tables []table) ([]extensionTable, error) {
	found, err := s.listExtensionTables(ctx, "pg_extension e, "+publishedTables, s.follow.Publication)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range found {
		if !s.isFollowable(t) {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return found, nil
	}
	create, err := s.createPublication(ctx, quoteName("without_extensions"), tables)
	if err != nil {
		return nil, err
	}
	return nil, model.Invalid(PublicationField, "%s has tables of extensions, which the new database does not have or may not change: %s; "+
		"follow a publication without them: run in the source's database %s", oneLine(quoteName(s.follow.Publication)), few(names), create)
}

// createPublication returns the statement that publishes the tables, and none of extensions that cannot be followed.
func (s *Session) createPublication(ctx context.Context, name string, tables []table) (string, error) {
	const most = 20
	if len(tables) > 0 && len(tables) <= most {
		names := make([]string, len(tables))
		for i, t := range tables {
			names[i] = t.sanitized()
		}
		return oneLine(fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s;", name, strings.Join(names, ", "))), nil
	}
	found, err := s.listExtensionTables(ctx, "pg_extension e, pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p')")
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(found, func(t extensionTable) bool { return !s.isFollowable(t) }) {
		return fmt.Sprintf("CREATE PUBLICATION %s FOR ALL TABLES; as a superuser, or as the tables' owner with FOR TABLE and their names", oneLine(name)), nil
	}
	return fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE and the names of all tables except those of extensions", oneLine(name)), nil
}
