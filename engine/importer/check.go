package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// Check looks for anything that would prevent the copy of data, and fails with the remedy. It logs what would cost
// less, and the copy leaves that out. target is a session as the new owner.
func (s *Session) Check(ctx context.Context, target *pgx.Conn) error {
	s.warnOfEncoding()
	if err := s.compareLocales(ctx, target); err != nil {
		return s.trouble(ctx, err)
	}
	return s.trouble(ctx, s.examine(ctx, target))
}

// examine checks the contents of the session's snapshot, and exports the snapshot.
func (s *Session) examine(ctx context.Context, target *pgx.Conn) error {
	if err := s.freeze(ctx); err != nil {
		return sourceError{err}
	}
	s.missing = nil
	for _, check := range []func(context.Context, *pgx.Conn) error{s.checkExtensions, s.checkCollations, s.checkRights} {
		if err := check(ctx, target); err != nil {
			return err
		}
	}
	return s.noteFollowed(ctx)
}

// warnOfEncoding warns about text whose encoding no server has verified.
func (s *Session) warnOfEncoding() {
	if s.encoding == "SQL_ASCII" {
		s.account.Say(model.ImportWarning, "the source's encoding is SQL_ASCII, where any bytes are text, and here text is UTF-8: a table with other text comes over "+
			"without its rows, and a name, default or comment with such ends the import; make it UTF-8 in the source before, rows in LATIN1 for one by: "+
			"UPDATE t SET c = convert_from(convert(convert_to(c, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII')")
	}
}

// copyOverhead is the most that a copy takes on top of the source's size, in bytes: write-ahead log that is not yet
// recycled, and temporary files.
const copyOverhead = 256 << 20

// NeededSpace returns the most disk space, in bytes, that the copy of a database of that size takes.
func NeededSpace(size int64) int64 { return size + size/10 + copyOverhead }

// Size returns the size of the source's database in bytes, as the source reports it, limited to a value that can still
// be added up.
func (s *Session) Size() int64 { return min(max(s.size, 0), 1<<60) }

// checkExtensions records which extensions of the source cannot be created here. It fails for one whose types columns
// use: without it whole tables would be missing, and the import would not be worth the time.
func (s *Session) checkExtensions(ctx context.Context, target *pgx.Conn) error {
	type extension struct{ Name, Table string }
	wanted, err := list(ctx, s.conn, "list extensions", pgx.RowToStructByPos[extension], `select e.extname::text, coalesce((select min(n.nspname || '.' || c.relname)
		from pg_depend d join pg_type t on t.oid = d.objid
		join pg_attribute a on a.atttypid in (t.oid, t.typarray) and a.attnum > 0 and not a.attisdropped
		join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
		where d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.classid = 'pg_type'::regclass and d.deptype = 'e'
		and c.relkind in ('r', 'p') and `+users+`), '') from pg_extension e order by 1`)
	if err != nil {
		return sourceError{err}
	}
	had, err := list(ctx, target, "list available extensions", pgx.RowTo[string],
		`select distinct name::text from pg_available_extension_versions where trusted or not superuser or installed`)
	if err != nil {
		return err
	}
	var needed []string
	for _, x := range wanted {
		if slices.Contains(had, x.Name) {
			continue
		}
		s.missing = append(s.missing, x.Name)
		s.account.Say(model.ImportWarning, fmt.Sprintf("the extension %s is not available to owners of databases here: it is left out, and what needs it", x.Name))
		if x.Table != "" {
			needed = append(needed, fmt.Sprintf("%s (for the table %s)", x.Name, x.Table))
		}
	}
	s.account.missing(s.missing)
	if len(needed) > 0 {
		return model.Errorf(model.CodeValidation, "tables of the source need extensions that are not available to owners of databases here: %s; "+
			"change those columns in the source, or leave the tables out of it", oneLine(strings.Join(needed, ", ")))
	}
	return nil
}

// logMemberRows logs rows that users may have put into an extension's tables, which come with the extension and are
// not copied. It does not read the rows: a query over a table can run its owner's code. So it cannot tell whose they
// are where the extension has rows of its own.
func (c *copying) logMemberRows(ctx context.Context) error {
	type member struct {
		Extension, Table string
		Mixed            bool
	}
	tables, err := list(ctx, c.conn, "list tables of extensions", pgx.RowToStructByPos[member], `select e.extname::text, c.oid::regclass::text, coalesce(x.condition, '') <> ''
		from pg_extension e, unnest(e.extconfig, e.extcondition) x (relation, condition) join pg_class c on c.oid = x.relation
		where c.relkind = 'r' and pg_relation_size(c.oid) > 0 and not e.extname::text = any(coalesce($1::text[], '{}')) order by 1, 2`, c.missing)
	if err != nil {
		return sourceError{err}
	}
	for _, m := range tables {
		if m.Mixed {
			c.account.Say(model.ImportWarning, fmt.Sprintf("rows that were added to the table %s of the extension %s, if there are any, are not copied", oneLine(m.Table), oneLine(m.Extension)))
			continue
		}
		c.account.flaw("TABLE DATA "+m.Table, fmt.Errorf("rows are not copied: the table belongs to the extension %s, which has its own ways to bring them over", m.Extension))
	}
	return nil
}

// checkCollations fails when a column's collation does not exist here.
func (s *Session) checkCollations(ctx context.Context, target *pgx.Conn) error {
	wanted, err := list(ctx, s.conn, "list collations", pgx.RowTo[string], `select distinct l.collname::text from pg_collation l join pg_attribute a on a.attcollation = l.oid
		join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
		where l.collnamespace = 'pg_catalog'::regnamespace and l.collname not in ('default', 'C', 'POSIX')
		and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped and `+users)
	if err != nil {
		return sourceError{err}
	}
	missing, err := list(ctx, target, "look for collations", pgx.RowTo[string], `select name from unnest($1::text[]) name where not exists (select from pg_collation
		where collname = name and collencoding in (-1, pg_char_to_encoding(getdatabaseencoding())))`, wanted)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return model.Errorf(model.CodeValidation, "columns of the source have collations this machine does not have: %s; "+
			"the operator can install their locales (on Debian with `dpkg-reconfigure locales`) for databases made after that",
			oneLine(strings.Join(missing, ", ")))
	}
	return nil
}

// checkRights fails when the source's user cannot read everything.
func (s *Session) checkRights(ctx context.Context, _ *pgx.Conn) error {
	inv, err := takeInventory(ctx, s.conn, s.number)
	if err != nil {
		return sourceError{err}
	}
	s.inventory = inv
	var unreadable, filtered []string
	for _, t := range inv.tables {
		switch {
		case !t.readable:
			unreadable = append(unreadable, t.String())
		case t.filtered:
			filtered = append(filtered, t.String())
		}
	}
	for _, q := range inv.sequences {
		if !q.readable {
			unreadable = append(unreadable, q.String())
		}
	}
	if len(unreadable) > 0 {
		return model.Errorf(model.CodeValidation, "%s: the user %q may not read %s; give it the owner of the tables, or grant it pg_read_all_data",
			SourceField, s.source.User, few(unreadable))
	}
	if len(filtered) > 0 {
		return model.Errorf(model.CodeValidation, "%s: row security hides rows of %s from the user %q; give it the tables' owner, or a role with BYPASSRLS",
			SourceField, few(filtered), s.source.User)
	}
	if inv.hiddenObjects > 0 {
		return model.Errorf(model.CodeValidation, "%s: the user %q may not read %s; grant it the roles that own them, or `grant select on large object ...`",
			SourceField, s.source.User, model.Count(inv.hiddenObjects, "large object"))
	}
	s.account.Say(model.ImportInfo, fmt.Sprintf("found %s, %s, %s",
		model.Count(len(inv.tables), "table"), model.Count(len(inv.sequences), "sequence"), model.Count(inv.largeObjects, "large object")))
	return nil
}

// few lists the first few of many names.
func few(names []string) string {
	const shown = 5
	if len(names) > shown {
		return oneLine(strings.Join(names[:shown], ", ")) + fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return oneLine(strings.Join(names, ", "))
}

// trouble explains to a person why an import cannot go on. It leaves an error that already has such a message as it is.
func (s *Session) trouble(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refusal := s.source.refusal(); refusal != nil {
		return refusal
	}
	if model.CodeOf(err) != model.CodeInternal {
		return err
	}
	where, said := "in the copy", err.Error()
	if _, ok := errors.AsType[sourceError](err); ok {
		where = "in the source"
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if pg.Code == "53100" && where == "in the copy" {
			return err // the disk is full: the error says whose
		}
		said = fmt.Sprintf("%s (%s)", pg.Message, pg.Code)
		if pg.Code == "55P03" { // lock_not_available
			said += "; somebody is altering a table there: try again when that is done"
		}
	}
	return &model.Error{Code: model.CodeConflict, Message: fmt.Sprintf("the import cannot go on: %s: %s", where, oneLine(said)), Err: err}
}
