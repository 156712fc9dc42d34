package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// publication is the source's publication that a new database follows.
type publication struct {
	oid     uint32
	events  bool // it publishes every kind of change
	viaRoot bool // changes of partitions as those of their topmost root
}

// publishedTables is the FROM clause, with the tables as c, of a publication's tables, whose name is the parameter.
const publishedTables = ` pg_publication_tables p join pg_namespace n on n.nspname = p.schemaname
	join pg_class c on c.relnamespace = n.oid and c.relname = p.tablename where p.pubname = $1 `

// checkPublication reads the publication and refuses one that does not publish whole tables, or has tables whose changes
// cannot be applied here.
func (s *Session) checkPublication(ctx context.Context) error {
	tables, err := readTables(ctx, s.conn, s.number)
	if err != nil {
		return sourceError{err}
	}
	p, err := s.readPublication(ctx)
	name := quoteName(s.follow.Publication)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		create, err := s.createPublication(ctx, name, tables)
		if err != nil {
			return err
		}
		return model.Invalid(PublicationField, "the source's database has no publication %s; run in it %s", oneLine(name), create)
	case err != nil:
		return sourceError{fmt.Errorf("read publication: %w", err)}
	case !p.events:
		return model.Invalid(PublicationField, "%s does not publish every kind of change; run in the source's database ALTER PUBLICATION %s SET (publish = '%s');",
			oneLine(name), oneLine(name), s.allEvents())
	}
	s.follow.publication = p
	if err := s.refuseFilters(ctx, name); err != nil {
		return err
	}
	if _, err := s.refuseExtensionTables(ctx, tables); err != nil {
		return err
	}
	if err := s.refuseGenerated(ctx, name); err != nil {
		return err
	}
	if err := s.markPublished(ctx, tables); err != nil {
		return err
	}
	if err := s.refuseEnumHashes(ctx, name, tables); err != nil {
		return err
	}
	return s.refuseUnidentified(ctx, tables)
}

func (s *Session) allEvents() string {
	if s.number < 110000 {
		return "insert, update, delete"
	}
	return "insert, update, delete, truncate"
}

func (s *Session) readPublication(ctx context.Context) (p publication, err error) {
	truncate, root := "true", "false"
	if s.number >= 110000 {
		truncate = "pubtruncate"
	}
	if s.number >= 130000 {
		root = "pubviaroot"
	}
	return p, s.conn.QueryRow(ctx, "select oid, pubinsert and pubupdate and pubdelete and "+truncate+", "+root+" from pg_publication where pubname = $1",
		s.follow.Publication).Scan(&p.oid, &p.events, &p.viaRoot)
}

// refuseFilters refuses row filters and column lists, which PostgreSQL 15 has: the copy has what they leave out, and would
// keep it as it was.
func (s *Session) refuseFilters(ctx context.Context, name string) error {
	if s.number < 150000 {
		return nil
	}
	filtered, err := list(ctx, s.conn, "list filters of the publication", pgx.RowTo[string], `select n.nspname || '.' || c.relname
		from pg_publication_rel r join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace
		where r.prpubid = $1::text::oid and (r.prqual is not null or r.prattrs is not null) order by 1`, fmt.Sprint(s.follow.publication.oid))
	if err != nil {
		return sourceError{err}
	}
	if len(filtered) > 0 {
		return model.Invalid(PublicationField, "%s has only some rows or columns of %s, and all of them are copied; "+
			"publish these tables without WHERE and without a list of columns, in another publication or with ALTER PUBLICATION %s SET TABLE …;",
			oneLine(name), few(filtered), oneLine(name))
	}
	return nil
}

// refuseGenerated refuses generated columns, which PostgreSQL 18 can publish: here they are generated, too.
func (s *Session) refuseGenerated(ctx context.Context, name string) error {
	if s.number < 180000 {
		return nil
	}
	generated, err := list(ctx, s.conn, "list published generated columns", pgx.RowTo[string], `select n.nspname || '.' || c.relname from`+publishedTables+`
		and exists (select from pg_publication o where o.pubname = p.pubname and o.pubgencols = 's')
		and exists (select from pg_attribute a where a.attrelid = c.oid and a.attgenerated = 's' and not a.attisdropped) order by 1`, s.follow.Publication)
	if err != nil {
		return sourceError{err}
	}
	if len(generated) > 0 {
		return model.Invalid(PublicationField, "%s publishes generated columns, which the new database generates itself, of %s; "+
			"run in the source's database ALTER PUBLICATION %s SET (publish_generated_columns = none);", oneLine(name), few(generated), oneLine(name))
	}
	return nil
}

// markPublished sets which tables the publication has, by themselves or by a table that they are a partition of, and the
// roots of partitions.
func (s *Session) markPublished(ctx context.Context, tables []table) error {
	published, err := list(ctx, s.conn, "list the publication's tables", pgx.RowTo[uint32], "select c.oid from"+publishedTables, s.follow.Publication)
	if err != nil {
		return sourceError{err}
	}
	type partition struct{ Child, Parent uint32 }
	partitions, err := list(ctx, s.conn, "list partitions", pgx.RowToStructByPos[partition],
		"select i.inhrelid, i.inhparent from pg_inherits i join pg_class c on c.oid = i.inhrelid where c.relispartition")
	if err != nil {
		return sourceError{err}
	}
	has, parent := map[uint32]bool{}, map[uint32]uint32{}
	for _, oid := range published {
		has[oid] = true
	}
	for _, p := range partitions {
		parent[p.Child] = p.Parent
	}
	const deepest = 100
	for i := range tables {
		t := &tables[i]
		for oid, depth := t.oid, 0; oid != 0 && depth < deepest; oid, depth = parent[oid], depth+1 {
			t.published = t.published || has[oid]
			if oid != t.oid {
				t.root = oid
			}
		}
	}
	return nil
}
