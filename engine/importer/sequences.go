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

// sequence is a sequence of the source, with its position.
type sequence struct {
	oid, schemaOID uint32
	schema, name   string
	readable       bool
	start          int64 // 0 before PostgreSQL 10, where every position is read

	position position
	last     int64
	called   bool
}

// position is the state of a sequence's position.
type position int

const (
	unread  position = iota
	known            // last and called were read from the source
	guessed          // it has not been used since it was set: last is its start
	lost             // it was dropped or replaced in the source: a flaw
)

func (s sequence) sanitized() string { return pgx.Identifier{s.schema, s.name}.Sanitize() }

func (s sequence) String() string { return s.schema + "." + s.name }

// listSequences lists the sequences of the snapshot.
func listSequences(ctx context.Context, conn *pgx.Conn, version int) ([]sequence, error) {
	start := "(select q.seqstart from pg_sequence q where q.seqrelid = c.oid)"
	if version < 100000 {
		start = "0::int8"
	}
	return list(ctx, conn, "list sequences", func(row pgx.CollectableRow) (s sequence, err error) {
		return s, row.Scan(&s.oid, &s.schemaOID, &s.schema, &s.name, &s.readable, &s.start)
	}, `select c.oid, n.oid, n.nspname::text, c.relname::text,
		coalesce(has_sequence_privilege(c.oid, 'select') and has_schema_privilege(n.oid, 'usage'), true), coalesce(`+start+`, 1)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'S' and `+users+` order by 3, 4`)
}

// sequencesTogether is how many positions one statement reads.
const sequencesTogether = 500

// readSequences reads the positions of the sequences, which are not part of a snapshot, in a short transaction of its
// own: the functions that read a sequence by its oid lock it as nextval does.
//
// It never sends a query that names a relation of the source where another user could replace the relation: planning it
// is enough to run the owner's code (DESIGN.md, "The source's users").
func (c *copying) readSequences(ctx context.Context) error {
	if len(c.inventory.sequences) == 0 {
		return nil
	}
	conn, err := c.another(ctx, c.enterNow)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for part := range slices.Chunk(c.inventory.sequences, sequencesTogether) {
		if err := c.readPositions(ctx, conn, part); err != nil {
			return sourceError{fmt.Errorf("read sequences: %w", err)}
		}
	}
	unsafe, err := c.unsafeSchemas(ctx, conn)
	if err != nil {
		return sourceError{err}
	}
	if err := c.readUnused(ctx, conn, unsafe); err != nil {
		return sourceError{fmt.Errorf("read sequences: %w", err)}
	}
	c.logGuesses(unsafe)
	return nil
}

// readPositions reads positions by oid. If the server refuses the part, it reads them one by one; a sequence that is
// gone is a flaw.
func (c *copying) readPositions(ctx context.Context, conn *pgx.Conn, part []sequence) error {
	err := c.guarded(ctx, conn, func() error { return c.queryPositions(ctx, conn, part) })
	switch {
	case err == nil && c.number >= 180000:
		c.markUnreturned(part)
		return nil
	case err == nil || !isGone(err):
		return err
	case len(part) > 1:
		for i := range part {
			if err := c.readPositions(ctx, conn, part[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	default:
		c.markLost(&part[0])
		return nil
	}
}

// guarded runs do in a savepoint, so that a refusal does not abort the transaction.
func (c *copying) guarded(ctx context.Context, conn *pgx.Conn, do func() error) error {
	if _, err := conn.Exec(ctx, "savepoint part"); err != nil {
		return err
	}
	refusal := do()
	end := "release savepoint part"
	if refusal != nil {
		end = "rollback to savepoint part; release savepoint part"
	}
	if conn.IsClosed() {
		return refusal
	}
	if err := conn.PgConn().Exec(ctx, end).Close(); err != nil {
		return errors.Join(refusal, err)
	}
	return refusal
}

// isGone reports whether the source refuses a statement because an object no longer exists or is of another kind.
func isGone(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains([]string{"42P01", "42704", "42809", "3F000", "42501", "XX000"}, pg.Code)
}

func (c *copying) markLost(s *sequence) {
	s.position = lost
	c.account.flaw("SEQUENCE "+s.String(), errors.New("it was dropped or replaced in the source during the import; its position here is that of a new one"))
}

// The positionsByOID queries return the oids, positions and states of sequences; a NULL position is unknown. Before
// PostgreSQL 18 they lock the sequences until the transaction ends.
const (
	positions18 = "select q, (d).last_value, (d).is_called from (select q, pg_get_sequence_data(q) d from unnest($1::text[]::oid[]) q) x"
	positions10 = "select q, pg_sequence_last_value(q), true from unnest($1::text[]::oid[]) q"
	positions96 = "select q, null::int8, (pg_sequence_parameters(q)).increment is null from unnest($1::text[]::oid[]) q"
)

func (c *copying) queryPositions(ctx context.Context, conn *pgx.Conn, part []sequence) error {
	query := positions10
	switch {
	case c.number >= 180000:
		query = positions18
	case c.number < 100000:
		query = positions96
	}
	at := map[uint32]*sequence{}
	var oids []string
	for i := range part {
		at[part[i].oid] = &part[i]
		oids = append(oids, fmt.Sprint(part[i].oid))
	}
	rows, _ := conn.Query(ctx, query, oids)
	var oid uint32
	var last *int64
	var called *bool
	_, err := pgx.ForEachRow(rows, []any{&oid, &last, &called}, func() error {
		if s := at[oid]; s != nil && last != nil && called != nil {
			s.position, s.last, s.called = known, *last, *called
		}
		return nil
	})
	return err
}

// markUnreturned records the positions that PostgreSQL 18 and newer did not return as lost: it returns one for every
// sequence that exists.
func (c *copying) markUnreturned(part []sequence) {
	for i := range part {
		if part[i].position == unread {
			c.markLost(&part[i])
		}
	}
}

// holdSequences locks the sequences of a server before PostgreSQL 10, which pg_dump reads by name there, until the copy
// is done. It refuses the import where a lock is not enough.
func (c *copying) holdSequences(ctx context.Context) error {
	if c.number >= 100000 || len(c.inventory.sequences) == 0 {
		return nil
	}
	unsafe, err := c.unsafeSchemas(ctx, c.conn)
	if err != nil {
		return sourceError{err}
	}
	var objects []object
	for _, q := range c.inventory.sequences {
		if role, ok := unsafe[q.schemaOID]; ok {
			return model.Invalid(SourceField, "the server is PostgreSQL %s, where pg_dump reads sequences by name: the role %q could replace %s with code of its own, "+
				"and have it run as the user %q; import as the owner of the database, revoke CREATE on the database from that role, or upgrade the server to PostgreSQL 10 or newer",
				c.Version, role, oneLine(q.String()), c.source.User)
		}
		objects = append(objects, object{q.oid, q.sanitized()})
	}
	err = c.queryPositions(ctx, c.conn, c.inventory.sequences)
	if isGone(err) {
		return errors.Join(errAltered, err)
	}
	if err != nil {
		return sourceError{fmt.Errorf("lock sequences: %w", err)}
	}
	others, err := misnamed(ctx, c.conn, objects)
	if err == nil && len(others) > 0 {
		return errAltered
	}
	return err
}

// unsafeSchemas returns the schemas of sequences that an unprivileged role of the source could rename, with that role:
// it could put something else under a sequence's name although the sequence is locked.
func (s *Session) unsafeSchemas(ctx context.Context, conn *pgx.Conn) (map[uint32]string, error) {
	var oids []string
	for _, q := range s.inventory.sequences {
		if oid := fmt.Sprint(q.schemaOID); q.position == unread && !slices.Contains(oids, oid) {
			oids = append(oids, oid)
		}
	}
	type renamer struct {
		Schema uint32
		Role   string
	}
	renamers, err := list(ctx, conn, "read who may rename schemas", pgx.RowToStructByPos[renamer], `select n.oid, min(r.rolname::text) from pg_namespace n, pg_roles r
		where n.oid = any($1::text[]::oid[]) and not r.rolsuper and not pg_has_role(r.oid, (select o.oid from pg_roles o where o.rolname = current_user), 'member')
		and (r.rolcreaterole or pg_has_role(r.oid, n.nspowner, 'member') and has_database_privilege(r.oid, current_database()::text, 'create'))
		group by n.oid`, oids)
	unsafe := map[uint32]string{}
	for _, r := range renamers {
		unsafe[r.Schema] = r.Role
	}
	return unsafe, err
}

// readUnused reads by name the positions of sequences that have not been used since they were set, which no function
// returns before PostgreSQL 18. The sequences are locked, and their schemas cannot be renamed, so the names still refer
// to them.
func (c *copying) readUnused(ctx context.Context, conn *pgx.Conn, unsafe map[uint32]string) error {
	var safe []*sequence
	for i := range c.inventory.sequences {
		s := &c.inventory.sequences[i]
		switch _, renamed := unsafe[s.schemaOID]; {
		case s.position != unread:
		case renamed:
			s.position, s.last, s.called = guessed, s.start, false
		default:
			safe = append(safe, s)
		}
	}
	for part := range slices.Chunk(safe, sequencesTogether) {
		named, err := c.stillNamed(ctx, conn, part)
		if err != nil {
			return err
		}
		if err := queryByName(ctx, conn, named); err != nil {
			return err
		}
	}
	return nil
}

// stillNamed returns the sequences that still have their names; the others are lost.
func (c *copying) stillNamed(ctx context.Context, conn *pgx.Conn, part []*sequence) (named []*sequence, err error) {
	var objects []object
	for _, s := range part {
		objects = append(objects, object{s.oid, s.sanitized()})
	}
	renamed, err := misnamed(ctx, conn, objects)
	if err != nil {
		return nil, err
	}
	for _, s := range part {
		if slices.Contains(renamed, s.oid) {
			c.markLost(s)
			continue
		}
		named = append(named, s)
	}
	return named, nil
}

func queryByName(ctx context.Context, conn *pgx.Conn, part []*sequence) error {
	if len(part) == 0 {
		return nil
	}
	queries := make([]string, len(part))
	for i, s := range part {
		queries[i] = fmt.Sprintf("select %d, last_value, is_called from %s", i, s.sanitized())
	}
	rows, _ := conn.Query(ctx, strings.Join(queries, " union all "))
	var i int
	var last int64
	var called bool
	_, err := pgx.ForEachRow(rows, []any{&i, &last, &called}, func() error {
		if i < 0 || i >= len(part) {
			return errors.New("the source answered for a sequence that is not there")
		}
		part[i].position, part[i].last, part[i].called = known, last, called
		return nil
	})
	return err
}

// logGuesses logs which positions are guesses, and why.
func (c *copying) logGuesses(unsafe map[uint32]string) {
	var names []string
	role := ""
	for _, s := range c.inventory.sequences {
		if s.position == guessed {
			names, role = append(names, s.String()), unsafe[s.schemaOID]
		}
	}
	if len(names) > 0 {
		c.account.Say(model.ImportWarning, fmt.Sprintf("%s of the source have not been used since they were made or set, and are set here to their start, "+
			"or past the largest value of their column: %s; before PostgreSQL 18 their position can only be read by name, by which the role %q could run code as the user %q; "+
			"import as the owner of the database to have it exactly", model.Count(len(names), "sequence"), few(names), role, c.source.User))
	}
}

// setSequences sets the sequences to the source's positions.
func (c *copying) setSequences(ctx context.Context) error {
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return err
	}
	for i := range c.inventory.sequences {
		q := &c.inventory.sequences[i]
		if q.position == lost {
			continue
		}
		if q.position == guessed {
			if err := q.pass(ctx, target); err != nil && fatal(err) {
				return err
			}
		}
		_, err := target.Exec(ctx, "select setval($1::text::regclass, $2, $3)", q.sanitized(), q.last, q.called)
		if err := c.flawed("SEQUENCE SET "+q.String(), err); err != nil {
			return err
		}
	}
	return nil
}

// pass moves a guessed position past the largest value of the column that takes its values from the sequence, if there
// is one.
func (s *sequence) pass(ctx context.Context, target *pgx.Conn) error {
	var column, table string
	err := target.QueryRow(ctx, `select quote_ident(a.attname), quote_ident(n.nspname) || '.' || quote_ident(c.relname)
		from pg_depend d join pg_sequence q on q.seqrelid = d.objid and q.seqincrement > 0
		join pg_class c on c.oid = d.refobjid join pg_namespace n on n.oid = c.relnamespace
		join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid and a.atttypid in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
		where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i') and d.objid = $1::text::regclass`,
		s.sanitized()).Scan(&column, &table)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var last int64
	if err := target.QueryRow(ctx, "select greatest(coalesce(max("+column+")::int8 + 1, $1), $1) from "+table, s.last).Scan(&last); err != nil {
		return err
	}
	s.last = last
	return nil
}
