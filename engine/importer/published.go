package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// listParts lists the rows of the catalog that a publication consists of.
func listParts(ctx context.Context, conn *pgx.Conn, version int, publication string) ([]PlannedPart, error) {
	query := `select 0::oid, 'publication ' || p.oid || ' ' || p.xmin from pg_publication p where p.pubname = $1
		union all select r.prrelid, 'table ' || r.oid || ' ' || r.xmin from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where p.pubname = $1`
	if version >= 150000 {
		query += ` union all select s.pnnspid, 'schema ' || s.oid || ' ' || s.xmin from pg_publication_namespace s join pg_publication p on p.oid = s.pnpubid where p.pubname = $1`
	}
	return list(ctx, conn, "read publication", pgx.RowToStructByPos[PlannedPart], query, publication)
}

// CheckPublished refuses a source that does not publish the followed tables as it did at the copy, or did not for a while:
// their changes of that time are lost. What the source has dropped or published since is no loss.
func (f *Follower) CheckPublished(ctx context.Context) error {
	conn, err := f.session(ctx)
	if err != nil {
		return err
	}
	changed, err := f.publicationChanged(ctx, conn)
	if err != nil {
		return f.explain(ctx, err)
	}
	if changed {
		return model.Errorf(model.CodeConflict, "the source's publication %s has changed since the copy, or a table of it; %s", oneLine(quoteName(f.Follow.Publication)), lossRemedy)
	}
	return nil
}

func (f *Follower) publicationChanged(ctx context.Context, conn *pgx.Conn) (bool, error) {
	parts, err := listParts(ctx, conn, f.Plan.Number, f.Follow.Publication)
	if err != nil {
		return false, err
	}
	has := map[PlannedPart]bool{}
	for _, part := range parts {
		has[part] = true
	}
	var gone []string // oids of what is not published as it was
	for _, part := range f.Plan.Publication {
		switch {
		case has[part]:
		case part.Object == 0:
			return true, nil
		default:
			gone = append(gone, fmt.Sprint(part.Object))
		}
	}
	c := f.copying(conn)
	c.follow = &following{Following: f.Follow}
	planned, now := c.inventory.tables, slices.Clone(c.inventory.tables)
	for i := range now {
		now[i].published = false
	}
	if err := c.markPublished(ctx, now); err != nil {
		return false, err
	}
	for i, t := range planned {
		if t.published && !now[i].published {
			gone = append(gone, fmt.Sprint(t.oid))
		}
	}
	if len(gone) == 0 {
		return false, nil
	}
	var exist bool
	err = conn.QueryRow(ctx, `select exists (select from (select oid from pg_class union all select oid from pg_namespace) o where o.oid = any (string_to_array($1, ',')::oid[]))`,
		strings.Join(gone, ",")).Scan(&exist)
	if err != nil {
		return false, fmt.Errorf("read catalog: %w", err)
	}
	return exist, nil
}
