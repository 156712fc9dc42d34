package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// stray is a partition whose rows do not all belong into it here: by the hash
// of an enum, which is that of numbers the server has given, or by the order
// of another collation. They are copied into its topmost root, which knows.
type stray struct {
	table table
	root  pgx.Identifier
}

func (c *copying) addStray(s stray) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays = append(c.strays, s)
}

// isMisplaced reports whether the copy's server has refused a row because of a
// check, that of a partition perhaps.
func isMisplaced(err error) bool {
	if _, ok := errors.AsType[sourceError](err); ok {
		return false
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23514"
}

// rootOf returns the topmost root of a partition in the target, nil for what is
// none.
func rootOf(ctx context.Context, target *pgx.Conn, t table) (pgx.Identifier, error) {
	var schema, name string
	err := target.QueryRow(ctx, `select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.oid = pg_partition_root($1::text::regclass) and c.oid <> $1::text::regclass`, t.sanitized()).Scan(&schema, &name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the root of %s: %w", t, err)
	}
	return pgx.Identifier{schema, name}, nil
}

// straySteps are the copies of strays. They come when every other table has its
// rows: those are emptied first, and these rows may belong into them.
func (c *copying) straySteps() []*step {
	var steps []*step
	for _, s := range c.strays {
		steps = append(steps, &step{name: "TABLE DATA " + s.table.String(), do: func(ctx context.Context, w *worker) error {
			return c.copyTable(ctx, w, &transfer{table: s.table, root: s.root})
		}})
	}
	return steps
}

// strayRoots returns the roots that have taken rows, sanitized, by the names of
// their partitions: there, rows can only be counted together.
func (c *copying) strayRoots(ctx context.Context) (map[string]string, error) {
	roots := map[string]string{}
	for _, s := range c.strays {
		if roots[s.table.String()] != "" {
			continue
		}
		target, err := c.workers[0].writer(ctx)
		if err != nil {
			return nil, err
		}
		root := s.root.Sanitize()
		rows, _ := target.Query(ctx, `select n.nspname || '.' || c.relname from pg_partition_tree($1::text::regclass) p
			join pg_class c on c.oid = p.relid join pg_namespace n on n.oid = c.relnamespace where p.isleaf`, root)
		leaves, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, fmt.Errorf("list partitions of %s: %w", root, err)
		}
		for _, leaf := range leaves {
			roots[leaf] = root
		}
	}
	return roots, nil
}
