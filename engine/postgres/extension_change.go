package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
)

// extensionTimeout bounds one script of an extension.
const extensionTimeout = 2 * time.Minute

// CreateExtension creates an extension and those that it requires, or updates it
// to the version that the machine has, in one transaction. It returns what it
// created or updated, in order. conn is the superuser's, in the tenant's database.
//
// The scripts run as the superuser. Before each of them every schema on its search
// path must belong to the superuser with everything in it, no event trigger may
// exist, and the settings that the tenant has given to the database are replaced by
// the server's own.
func CreateExtension(ctx context.Context, conn *pgx.Conn, major int, name, owner string) (done []string, err error) {
	known, err := Extensions(ctx, conn)
	if err != nil {
		return nil, err
	}
	x := findExtension(known, name)
	c := extensionChange{conn: conn, known: known, major: major, owner: owner}
	err = inChange(ctx, conn, name, func() error {
		if x.Installed != "" {
			done = []string{name}
			return c.update(ctx, x)
		}
		return c.create(ctx, x, &done)
	})
	return done, err
}

// DropExtension drops an extension that nothing needs. conn is the superuser's, in
// the tenant's database.
func DropExtension(ctx context.Context, conn *pgx.Conn, name string) error {
	known, err := Extensions(ctx, conn)
	if err != nil {
		return err
	}
	x := findExtension(known, name)
	if x.Installed == "" {
		return model.Errorf(model.CodeNotFound, "the database has no extension %q", name)
	}
	statements := []string{"DROP EXTENSION " + quoteName(name) + " RESTRICT"}
	if x.Extension.Schema != "" && x.Extension.Schema == x.Schema && x.Owner == Superuser {
		schema := quoteName(x.Schema)
		statements = append(statements, "ALTER EXTENSION plpgsql DROP SCHEMA "+schema, "DROP SCHEMA "+schema+" RESTRICT")
	}
	return inChange(ctx, conn, name, func() error { return all(ctx, conn, statements) })
}

// extensionChange creates or updates extensions, within a transaction.
type extensionChange struct {
	conn  *pgx.Conn
	known []Extension
	major int
	owner string
}

// inChange runs act in a transaction in which nothing of a tenant's can run.
func inChange(ctx context.Context, conn *pgx.Conn, name string, act func() error) error {
	if err := resetTenantsSettings(ctx, conn); err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin a change of extensions: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	err = all(ctx, conn, []string{
		fmt.Sprintf("SET LOCAL lock_timeout = %d", tableWait.Milliseconds()),
		fmt.Sprintf("SET LOCAL statement_timeout = %d", extensionTimeout.Milliseconds()),
		"SET LOCAL client_min_messages = error",
	})
	if err == nil {
		err = refuseEventTriggers(ctx, conn)
	}
	if err == nil {
		err = act()
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	return extensionError(name, err)
}

// create creates x after those that it requires.
func (c *extensionChange) create(ctx context.Context, x Extension, done *[]string) error {
	if err := x.Refusal(c.major); err != nil {
		return err
	}
	if !x.Loaded {
		return model.Errorf(model.CodeConflict, "the server has not loaded the library of the extension %s", x.Name)
	}
	for _, name := range x.Requires {
		required := findExtension(c.known, name)
		if required.Installed != "" || slices.Contains(*done, name) {
			continue
		}
		if err := c.create(ctx, required, done); err != nil {
			return err
		}
	}
	for _, schema := range x.Makes {
		if err := refuseSchema(ctx, c.conn, x.Name, schema); err != nil {
			return err
		}
	}
	if err := makeHeldSchema(ctx, c.conn, x.InSchema()); err != nil {
		return err
	}
	if err := c.verify(ctx, x, x.InSchema()); err != nil {
		return err
	}
	if _, err := c.conn.Exec(ctx, "CREATE EXTENSION "+quoteName(x.Name)+" SCHEMA "+quoteName(x.InSchema())); err != nil {
		return err
	}
	*done = append(*done, x.Name)
	return c.finish(ctx, x)
}

// update updates x to the version that the machine has.
func (c *extensionChange) update(ctx context.Context, x Extension) error {
	switch {
	case x.Missing():
		return model.Errorf(model.CodeConflict, "this machine does not have the extension %s: the operator can %s", x.Name, x.Install(c.major))
	case x.Update() == "":
		return nil
	case x.Owner != Superuser:
		return model.Errorf(model.CodeConflict, "the extension %s belongs to %s, who updates it with ALTER EXTENSION %s UPDATE", x.Name, x.Owner, quoteName(x.Name))
	case !x.Allowed():
		return model.Errorf(model.CodeForbidden, "the extension %s is not updated: %s", x.Name, x.Notes)
	case x.Fixed != "":
		return model.Errorf(model.CodeConflict, "the extension %s is not updated in place: %s", x.Name, x.Fixed)
	}
	if err := c.verify(ctx, x, x.Schema); err != nil {
		return err
	}
	if _, err := c.conn.Exec(ctx, "ALTER EXTENSION "+quoteName(x.Name)+" UPDATE"); err != nil {
		return err
	}
	return c.finish(ctx, x)
}

// verify refuses a script of x in the schema unless everything in the schemas that
// it uses belongs to the superuser.
func (c *extensionChange) verify(ctx context.Context, x Extension, schema string) error {
	schemas := []string{schema}
	if x.Installed != "" {
		schemas = append(schemas, x.Makes...)
	}
	rows, _ := c.conn.Query(ctx, `select distinct n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = any ($1)`, x.Requires)
	required, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, s := range append(schemas, required...) {
		if s == "pg_catalog" {
			continue
		}
		if err := verifySchema(ctx, c.conn, x.Name, s); err != nil {
			return err
		}
	}
	return nil
}
