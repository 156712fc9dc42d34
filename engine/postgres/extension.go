package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/postgres/extensions"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Extension is an extension that the machine has, or that a database has.
type Extension struct {
	extensions.Extension
	Available string   // the version that the machine has, "" if it has none
	Requires  []string // other extensions
	Installed string   // the database's version, "" if it has none
	Schema    string   // where it is installed
	Owner     string   // the role that owns it
	Loaded    bool     // the server has loaded the library that it needs
	// Tables are those that belong to it and go with it, [maxExtensionTables] at most, qualified and quoted as in SQL.
	Tables []string
}

// Missing reports whether the database has an extension whose files the machine
// lacks, so that nothing of it works.
func (x Extension) Missing() bool { return x.Installed != "" && x.Available == "" }

// MissingExtensions returns the names of those whose files the machine lacks.
func MissingExtensions(known []Extension) (names []string) {
	for _, x := range known {
		if x.Missing() {
			names = append(names, x.Name)
		}
	}
	return names
}

// RefuseMissing refuses a database with extensions whose files PostgreSQL of a major version lacks here: what needs them
// would fail. It says what to install, and which that version does not have at all.
func RefuseMissing(names []string, major int) error {
	var lacks, gone []string
	for _, name := range names {
		if x := extensions.Find(name); x.Before != 0 && major >= x.Before {
			gone = append(gone, name)
		} else {
			lacks = append(lacks, fmt.Sprintf("%s (the operator can %s)", name, x.Install(major)))
		}
	}
	switch {
	case len(gone) > 0:
		return model.Errorf(model.CodeConflict, "PostgreSQL %d does not have extensions that the database has: %s; nothing was changed: drop them first", major, strings.Join(gone, ", "))
	case len(lacks) > 0:
		return model.Errorf(model.CodeConflict, "PostgreSQL %d of this machine lacks the files of extensions that the database has: %s; nothing was changed. One that is not needed can be dropped first",
			major, strings.Join(lacks, "; "))
	default:
		return nil
	}
}

// Update returns the version to which the extension can be updated, "" if there is
// none.
func (x Extension) Update() string {
	if x.Installed == "" || x.Available == x.Installed {
		return ""
	}
	return x.Available
}

// maxExtensionTables is how many tables of an extension are listed: the owner of one can add tables to it.
const maxExtensionTables = 100

// extensionsQuery lists what the server can create and what the database has. The
// functions read the control files on the machine.
var extensionsQuery = fmt.Sprintf(`select coalesce(a.name, e.extname)::text, coalesce(a.default_version, ''), coalesce(array_remove(v.requires::text[], 'plpgsql'), '{}'),
	coalesce(e.extversion, ''), coalesce(n.nspname::text, ''), coalesce(pg_get_userbyid(e.extowner)::text, ''), array(
		select quote_ident(s.nspname) || '.' || quote_ident(c.relname) from pg_depend d join pg_class c on c.oid = d.objid join pg_namespace s on s.oid = c.relnamespace
		where d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e' and d.classid = 'pg_class'::regclass and c.relkind in ('r', 'p')
		order by 1 limit %d)
	from pg_available_extensions() a left join pg_available_extension_versions() v on v.name = a.name and v.version = a.default_version
	full join pg_extension e on e.extname = a.name left join pg_namespace n on n.oid = e.extnamespace
	where coalesce(a.name, e.extname) <> 'plpgsql' order by 1`, maxExtensionTables)

// Extensions lists the extensions that the machine or the database has, by name.
// conn is the superuser's, in the tenant's database.
func Extensions(ctx context.Context, conn *pgx.Conn) ([]Extension, error) {
	var loaded string
	if err := conn.QueryRow(ctx, "select current_setting('shared_preload_libraries')").Scan(&loaded); err != nil {
		return nil, fmt.Errorf("list extensions: %w", err)
	}
	rows, _ := conn.Query(ctx, extensionsQuery)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x Extension, err error) {
		var name string
		err = row.Scan(&name, &x.Available, &x.Requires, &x.Installed, &x.Schema, &x.Owner, &x.Tables)
		x.Extension = extensions.Find(name)
		x.Loaded = x.Preload == "" || hasLibrary(loaded, x.Preload)
		return x, err
	})
	if err != nil {
		return nil, fmt.Errorf("list extensions: %w", err)
	}
	return all, nil
}

// hasLibrary reports whether a library is on a list such as
// shared_preload_libraries.
func hasLibrary(list, library string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.Trim(strings.TrimSpace(item), `"`) == library {
			return true
		}
	}
	return false
}

// findExtension returns one of Extensions, one that is neither available nor
// installed if there is none.
func findExtension(all []Extension, name string) Extension {
	for _, x := range all {
		if x.Name == name {
			return x
		}
	}
	return Extension{Extension: extensions.Find(name)}
}

// Refusal returns the reason why the appliance does not create or update the
// extension on a server of that major version, nil if it does.
func (x Extension) Refusal(major int) error {
	switch {
	case !x.Allowed():
		return model.Errorf(model.CodeForbidden, "the extension %s is not to be had: %s", x.Name, x.Notes)
	case x.Before != 0 && major >= x.Before:
		return model.Errorf(model.CodeConflict, "PostgreSQL %d has no extension %s", major, x.Name)
	case x.Available == "":
		return model.Errorf(model.CodeConflict, "this machine does not have the extension %s: the operator can %s", x.Name, x.Install(major))
	}
	return nil
}

// extensionError maps the failures that a client can act on; the codes are from
// PostgreSQL's appendix A.
func extensionError(name string, err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch pg.Code {
	case "2BP01": // dependent_objects_still_exist
		return model.Errorf(model.CodeConflict, "objects of the database need the extension %s, drop them first: %s", name, firstLines(pg.Detail))
	case "55P03", "40P01": // lock_not_available, deadlock_detected
		return model.Errorf(model.CodeConflict, "another session holds what the extension %s needs; try again when that has ended", name)
	case "57014": // query_canceled: statement_timeout
		return model.Errorf(model.CodeConflict, "the script of the extension %s took longer than %v; nothing was changed", name, extensionTimeout)
	case "58P01": // undefined_file
		return model.Errorf(model.CodeConflict, "this machine lacks a file of the extension %s (%s)", name, pg.Message)
	}
	return fmt.Errorf("extension %s: %w", name, err)
}

// firstLines shortens a list of dependent objects.
func firstLines(text string) string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "; ")
}
