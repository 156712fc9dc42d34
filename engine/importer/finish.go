package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// finish does what would have been in the way before: row security, which may hide rows from the owner, too;
// materialized views, which are filled under it; privileges, which the owner may have revoked from himself; statistics;
// and the comment and the settings of the database.
func (c *copying) finish(ctx context.Context) error {
	for _, do := range []func(context.Context) error{
		c.createAll("ROW SECURITY"), c.refreshViews, c.analyze, c.createAll("ACL"), c.createAll("DEFAULT ACL"), c.copyComment, c.copySettings,
	} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// createAll creates the entries of a kind, one by one.
func (c *copying) createAll(desc string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, e := range c.entries {
			if e.desc != desc {
				continue
			}
			if err := c.flawed(e.name(), c.make(ctx, c.workers[0], e)); err != nil {
				return err
			}
		}
		return nil
	}
}

// flawed records a refusal as a flaw and returns any fatal error.
func (c *copying) flawed(object string, err error) error {
	if err != nil && !fatal(err) {
		c.account.flaw(object, err)
		return nil
	}
	return err
}

// analyze collects the statistics that the planner needs from the start.
func (c *copying) analyze(ctx context.Context) error {
	var steps []*step
	for _, t := range c.inventory.tables {
		if c.rows[t.oid] == told {
			continue
		}
		steps = append(steps, &step{name: "STATISTICS OF " + t.String(), weight: t.heap, do: func(ctx context.Context, w *worker) error {
			return w.execute(ctx, "analyze "+t.sanitized())
		}})
	}
	return c.run(ctx, steps)
}

// copyComment copies the database's comment, which pg_dump leaves out, as it does the settings.
func (c *copying) copyComment(ctx context.Context) error {
	comment, err := c.readComment(ctx)
	if err != nil {
		return err
	}
	return c.setComment(ctx, comment)
}

func (c *copying) readComment(ctx context.Context) (comment *string, err error) {
	if err := c.conn.QueryRow(ctx, "select shobj_description(oid, 'pg_database') from pg_database where datname = current_database()").Scan(&comment); err != nil {
		return nil, sourceError{fmt.Errorf("read comment: %w", err)}
	}
	return comment, nil
}

func (c *copying) setComment(ctx context.Context, comment *string) error {
	if comment == nil {
		return nil
	}
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return err
	}
	_, err = target.Exec(ctx, "comment on database "+quoteName(target.Config().Database)+" is "+quoteLiteral(*comment))
	return c.flawed("COMMENT DATABASE", err)
}

// copySettings copies the settings of the source's database (ALTER DATABASE ... SET) to the new database, and those of
// the source's user (ALTER ROLE ... SET) to its owner; those IN DATABASE win.
func (c *copying) copySettings(ctx context.Context) error {
	settings, err := c.readSettings(ctx)
	if err != nil {
		return err
	}
	return c.setSettings(ctx, settings)
}

func (c *copying) readSettings(ctx context.Context) ([]PlannedSetting, error) {
	settings, err := list(ctx, c.conn, "read settings", pgx.RowToStructByPos[PlannedSetting], `select unnest(s.setconfig), s.setrole <> 0 from pg_db_role_setting s
		where s.setrole in (0, (select oid from pg_roles where rolname = current_user))
		and s.setdatabase in (0, (select oid from pg_database where datname = current_database())) order by s.setrole <> 0, s.setdatabase <> 0`)
	if err != nil {
		return nil, sourceError{err}
	}
	return settings, nil
}

func (c *copying) setSettings(ctx context.Context, settings []PlannedSetting) error {
	for _, s := range settings {
		name, value, _ := strings.Cut(s.Text, "=")
		name = strings.ToLower(name) // TimeZone, DateStyle, IntervalStyle
		if err := model.ValidateSetting(name); err != nil {
			c.account.Say(model.ImportWarning, fmt.Sprintf("the setting %s of the source's database or user is left out: it is the appliance's own here", oneLine(name)))
			continue
		}
		if err := c.flawed("SETTING "+name, c.copySetting(ctx, name, value, s.Own)); err != nil {
			return err
		}
	}
	return nil
}

// copySetting has the server write the value, whatever its form: the server knows which settings are lists.
func (c *copying) copySetting(ctx context.Context, name, value string, own bool) error {
	conn, err := c.Target(ctx) // a session of its own: the value takes effect in it
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "select set_config($1, $2, false)", name, value); err != nil {
		return err
	}
	whose := "database " + quoteName(conn.Config().Database)
	if own {
		whose = "role current_user in " + whose
	}
	_, err = conn.Exec(ctx, "alter "+whose+" set "+pgx.Identifier(strings.Split(name, ".")).Sanitize()+" from current")
	return err
}

func quoteLiteral(text string) string {
	if strings.Contains(text, `\`) {
		return ` E'` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `'`, `''`) + `'`
	}
	return `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
}
