package importer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

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
	return c.eachView(func(v view) error { return c.flawed("MATERIALIZED VIEW DATA "+v.schema+"."+v.name, c.refresh(ctx, v)) })
}

func (c *copying) refresh(ctx context.Context, v view) error {
	return c.workers[0].execute(ctx, "set row_security = on; refresh materialized view "+v.sanitized()+"; set row_security = off")
}

func (v view) sanitized() string { return pgx.Identifier{v.schema, v.name}.Sanitize() }

// fillViewsEarly fills the materialized views before the cutover, and logs which could not be filled.
func (c *copying) fillViewsEarly(ctx context.Context) error {
	return c.fillFollowed(ctx, func(v view, err error) {
		c.account.Say(model.ImportWarning, fmt.Sprintf("the materialized view %s.%s cannot be filled yet, and is tried again at the cutover: %v", v.schema, v.name, err))
	})
}

// fillFollowed fills the materialized views of a database that follows. It leaves them as they are if row security is
// forced on the owner: that is enabled at the cutover only, and hides rows from them.
func (c *copying) fillFollowed(ctx context.Context, refused func(view, error)) error {
	if len(c.inventory.views) == 0 {
		return nil
	}
	forced, err := c.askTarget(ctx, "select exists (select from pg_class where relforcerowsecurity)")
	if forced || err != nil {
		return err
	}
	return c.eachView(func(v view) error {
		err := c.refresh(ctx, v)
		if err != nil && !fatal(err) {
			refused(v, err)
			return nil
		}
		return err
	})
}

// fillEmptyViews fills the materialized views that fillViewsEarly has not filled.
func (c *copying) fillEmptyViews(ctx context.Context) error {
	return c.eachView(func(v view) error {
		filled, err := c.askTarget(ctx, "select coalesce((select relispopulated from pg_class where oid = to_regclass($1)), false)", v.sanitized())
		if filled || err != nil {
			return err
		}
		return c.flawed("MATERIALIZED VIEW DATA "+v.schema+"."+v.name, c.refresh(ctx, v))
	})
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
	if err := c.fillFollowed(ctx, func(view, error) {}); err != nil { // the cutover records those that are empty
		return c.trouble(ctx, err)
	}
	return nil
}
