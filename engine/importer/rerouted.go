package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// reroutedPartition is a partition that does not accept all of its rows here,
// because enums hash differently on each server or because the collation sorts
// differently. Its rows are copied into its topmost root, which routes them.
type reroutedPartition struct {
	table table
	root  pgx.Identifier
}

func (c *copying) reroute(s reroutedPartition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rerouted = append(c.rerouted, s)
}

// isMisplaced reports whether the target has refused a row because of a check
// constraint, such as a partition's.
func isMisplaced(err error) bool {
	if _, ok := errors.AsType[sourceError](err); ok {
		return false
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23514"
}

// rootOf returns the topmost root of a partition in the target, nil for a table
// that is not a partition.
func rootOf(ctx context.Context, target *pgx.Conn, t table) (pgx.Identifier, error) {
	var schema, name string
	err := target.QueryRow(ctx, `select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.oid = pg_partition_root($1::text::regclass) and c.oid <> $1::text::regclass`, t.sanitized()).Scan(&schema, &name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the root of %s: %w", t, err)
	}
	return pgx.Identifier{schema, name}, nil
}

// reroutedSteps copy the rerouted partitions. They run after all other tables
// are filled: filling a table empties it first, and these rows may go into it.
func (c *copying) reroutedSteps() []*step {
	var steps []*step
	for _, s := range c.rerouted {
		steps = append(steps, &step{name: "TABLE DATA " + s.table.String(), do: func(ctx context.Context, w *worker) error {
			return c.copyTable(ctx, w, &transfer{table: s.table, root: s.root})
		}})
	}
	return steps
}

// reroutedRoots maps the names of partitions to their roots, sanitized, where
// rows were rerouted: below such a root rows can only be counted together.
func (c *copying) reroutedRoots(ctx context.Context) (map[string]string, error) {
	roots := map[string]string{}
	for _, s := range c.rerouted {
		if roots[s.table.String()] != "" {
			continue
		}
		target, err := c.workers[0].writer(ctx)
		if err != nil {
			return nil, err
		}
		root := s.root.Sanitize()
		partitions, err := list(ctx, target, "list partitions of "+root, pgx.RowTo[string], `select n.nspname || '.' || c.relname from pg_partition_tree($1::text::regclass) p
			join pg_class c on c.oid = p.relid join pg_namespace n on n.oid = c.relnamespace where p.isleaf`, root)
		if err != nil {
			return nil, err
		}
		for _, partition := range partitions {
			roots[partition] = root
		}
	}
	return roots, nil
}
