package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// eachView calls do for the materialized views that hold rows in the source, in the order in which they were made.
func (c *copying) eachView(do func(view) error) error {
	for _, e := range c.entries {
		at := slices.IndexFunc(c.inventory.views, func(v view) bool { return v.oid == e.oid })
		if e.desc != "MATERIALIZED VIEW" || at < 0 || c.hasFailed(e.id) {
			continue
		}
		if err := do(c.inventory.views[at]); err != nil {
			return err
		}
	}
	return nil
}

// refreshViews fills the materialized views.
func (c *copying) refreshViews(ctx context.Context) error {
	return c.eachView(func(v view) error { return c.flawed(v.data(), c.refresh(ctx, v)) })
}

func (c *copying) refresh(ctx context.Context, v view) error {
	return c.workers[0].execute(ctx, "set row_security = on; refresh materialized view "+v.sanitized()+"; set row_security = off")
}

func (v view) sanitized() string { return pgx.Identifier{v.schema, v.name}.Sanitize() }

// String returns the view's name with its schema, data the object that a flaw names.
func (v view) String() string { return v.schema + "." + v.name }
func (v view) data() string   { return "MATERIALIZED VIEW DATA " + v.String() }

// fillFollowed fills the materialized views of a database that follows, and records those that cannot be filled. It leaves
// them all as they are if row security is forced on the owner: that is enabled at the cutover only, and hides rows from them.
func (c *copying) fillFollowed(ctx context.Context) error {
	if len(c.inventory.views) == 0 {
		return nil
	}
	forced, err := c.askTarget(ctx, "select exists (select from pg_class where relforcerowsecurity)")
	if forced || err != nil {
		return err
	}
	return c.eachView(func(v view) error {
		err := c.refresh(ctx, v)
		switch {
		case err == nil:
			c.account.viewFilled(v)
		case fatal(err) || ctx.Err() != nil:
			return err
		default:
			c.account.viewRefused(v, err)
		}
		return nil
	})
}

// fillEmptyViews fills the materialized views that fillFollowed has not filled, and records those whose rows are too old.
func (c *copying) fillEmptyViews(ctx context.Context) error {
	return c.eachView(func(v view) error {
		filled, err := c.askTarget(ctx, "select coalesce((select relispopulated from pg_class where oid = to_regclass($1)), false)", v.sanitized())
		if err != nil {
			return err
		}
		if filled {
			c.account.noteStale(v)
			return nil
		}
		return c.flawedView(v, c.refresh(ctx, v))
	})
}

// flawedView records every refusal as a flaw, also a full disk: after a cutover nobody can write until the database is open,
// and its owner can fill a view later.
func (c *copying) flawedView(v view, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.SeverityUnlocalized == "ERROR" {
		c.account.flaw(v.data(), err)
		return nil
	}
	return c.flawed(v.data(), err)
}

func (c *copying) askTarget(ctx context.Context, query string, args ...any) (yes bool, err error) {
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return false, err
	}
	if err := target.QueryRow(ctx, query, args...).Scan(&yes); err != nil {
		return false, fmt.Errorf("read catalog of the new database: %w", err)
	}
	return yes, nil
}

// FillViews fills the materialized views again while the new database follows; it may run beside the other methods. The
// end of ctx ends it, and the views then have the rows that they had.
func (f *Follower) FillViews(ctx context.Context) error {
	c := f.Plan.copying(&Session{source: Source{refused: new(atomic.Pointer[model.Error])}, account: f.account}, f.Owner, f.Target)
	defer c.close(ctx)
	if err := c.fillFollowed(ctx); err != nil {
		return c.trouble(ctx, err)
	}
	return nil
}
