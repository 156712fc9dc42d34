package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// copySchema creates everything that must exist before the rows are copied.
func (c *copying) copySchema(ctx context.Context) error {
	entries, err := c.describe(ctx)
	if err != nil {
		return err
	}
	c.account.Say(model.ImportInfo, fmt.Sprintf("pg_dump has described %d objects", len(entries)))
	c.entries = c.choose(entries)
	for _, e := range c.entries {
		if e.section != sectionPreData {
			continue
		}
		if err := c.flawed(e.name(), c.make(ctx, c.workers[0], e)); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the entries to create, with their roles mapped, and logs what is left out. Large objects are copied
// without pg_dump.
func (c *copying) choose(entries []entry) []entry {
	var chosen []entry
	followed := -1 // the entry of the publication that is followed
	for _, e := range entries {
		switch {
		case e.desc == "EVENT TRIGGER":
			c.setFailed(e.id)
			c.account.Say(model.ImportWarning, e.name()+" is left out: event triggers need a superuser, which the owner of a database is not here")
		case e.desc == "EXTENSION" && slices.Contains(c.missing, e.tag):
			c.setFailed(e.id)
			c.account.flaw(e.name(), errors.New("the extension is not available to owners of databases here"))
		case e.desc == "FOREIGN DATA WRAPPER", e.desc == "SERVER", e.desc == "USER MAPPING":
			// Not even tried: the server would log their passwords.
			c.setFailed(e.id)
			c.account.flaw(e.name(), errors.New("foreign servers need a superuser, which the owner of a database is not here"))
		case e.desc == "SUBSCRIPTION", e.desc == "DATABASE", e.desc == "DATABASE PROPERTIES", strings.HasPrefix(e.desc, "BLOB"):
			c.setFailed(e.id)
		case e.desc == "PUBLICATION" && c.follow != nil && e.tag == c.follow.Publication:
			c.setFailed(e.id) // it is the means of the move
			followed = e.id
		case strings.HasPrefix(e.desc, "PUBLICATION ") && slices.Contains(e.needs, followed): // a table or a schema of it
			c.setFailed(e.id)
		case e.desc == "POLICY":
			if e.definition = c.policy(e); e.definition == "" {
				c.setFailed(e.id)
				continue
			}
			chosen = append(chosen, e)
		case e.desc == "TRIGGER" && c.follow != nil:
			chosen = append(chosen, splitTrigger(e)...)
		default:
			if e.desc == "ACL" || e.desc == "DEFAULT ACL" {
				e.definition = c.roles.grants(e.definition, e.owner)
			}
			chosen = append(chosen, e)
		}
	}
	c.account.leaveOut(c.roles.lost)
	return chosen
}

// policy returns the definition of a policy for the roles that exist here. It records the roles that do not as a flaw:
// the policy then differs from the source's.
func (c *copying) policy(e entry) string {
	definition, lost := c.roles.policy(e.definition, e.owner)
	if len(lost) == 0 {
		return definition
	}
	said := "it is left out"
	switch {
	case definition != "" && isRestrictive(scan(e.definition)):
		said = "it restricts everybody here"
	case definition != "":
		said = "it applies only to the other roles"
	}
	c.account.flaw(e.name(), fmt.Errorf("the source has it for roles that are not here (%s): %s, so that no role sees more rows than in the source; "+
		"make the roles here, then the policy for them", few(lost), said))
	return definition
}

// make executes an entry's definition. It skips a comment or privilege whose object was not created.
func (c *copying) make(ctx context.Context, w *worker, e entry) error {
	remark := e.desc == "COMMENT" || e.desc == "ACL"
	if strings.TrimSpace(e.definition) == "" || remark && slices.ContainsFunc(e.needs, c.hasFailed) {
		return nil
	}
	err := w.execute(ctx, e.definition)
	if err != nil && !fatal(err) && (e.desc == "TABLE" || e.desc == "MATERIALIZED VIEW") {
		err = c.makeParts(ctx, w, e, err)
	}
	if err != nil {
		c.setFailed(e.id)
	}
	return err
}

// makeParts creates a table or materialized view without the attributes that this server refuses, which follow it in
// statements of their own. An option that this server does not know is useless to it, and not a flaw.
func (c *copying) makeParts(ctx context.Context, w *worker, e entry, refusal error) error {
	parts := statements(e.definition)
	if len(parts) < 2 || w.execute(ctx, parts[0]) != nil {
		return refusal
	}
	var unknown []string
	for _, part := range parts[1:] {
		err := w.execute(ctx, part)
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "22023" { // invalid_parameter_value
			unknown = append(unknown, oneLine(pg.Message))
			continue
		}
		if err := c.flawed(e.name(), err); err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		c.account.Say(model.ImportWarning, fmt.Sprintf("%s: %s left out: %s", e.name(), model.Count(len(unknown), "attribute"), unknown[0]))
	}
	return nil
}
