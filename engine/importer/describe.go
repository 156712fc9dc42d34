package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// describeTries is how often the source is read and described if its objects are dropped or altered meanwhile.
const describeTries = 3

// errAltered says that an object of the snapshot was dropped, replaced or altered.
var errAltered = errors.New("objects of the source were dropped or altered while they were read; try again when that is done")

// describe locks the tables of the source and has pg_dump describe the schema. pg_dump lists the snapshot's objects and
// asks the server for their current definitions: when the two differ, both start over in a new snapshot.
func (c *copying) describe(ctx context.Context) ([]entry, error) {
	for try := 1; ; try++ {
		entries, err := c.describeOnce(ctx)
		altered, askErr := c.isAltered(ctx, err)
		switch {
		case askErr != nil:
			return nil, askErr
		case !altered:
			return entries, err
		case try < describeTries:
			c.account.Say(model.ImportWarning, "objects of the source were dropped or altered while they were read: reading them again")
			if err := c.again(ctx); err != nil {
				return nil, err
			}
		case err == nil:
			c.account.Say(model.ImportWarning, "the source keeps changing: what was dropped or altered since its snapshot may not come over, see errors")
			return entries, nil
		default:
			return nil, err
		}
	}
}

func (c *copying) describeOnce(ctx context.Context) ([]entry, error) {
	if err := c.hold(ctx, c.inventory.tables); err != nil {
		return nil, sourceError{err}
	}
	if err := c.holdSequences(ctx); err != nil {
		return nil, err
	}
	conn, err := c.describer(ctx)
	if err != nil {
		return nil, err
	}
	return dumpSchema(ctx, c.Job, c.snapshot, conn.PgConn())
}

// again reads the source in a new snapshot.
func (c *copying) again(ctx context.Context) error {
	c.snapshot = ""
	if err := c.enter(ctx, c.conn); err != nil {
		return sourceError{err}
	}
	target, err := c.Target(ctx)
	if err != nil {
		return err
	}
	defer target.Close(context.WithoutCancel(ctx))
	return c.examine(ctx, target)
}

// fingerprint computes one number from the definitions in the catalog, except those of temporary objects. Equal
// definitions give the same number in every snapshot.
var fingerprint = func() string {
	var sums []string
	for catalog, where := range map[string]string{
		"pg_class":      "relpersistence <> 't' and relnamespace in (select n.oid from pg_namespace n where " + userSchema + ")",
		"pg_proc":       "pronamespace in (select n.oid from pg_namespace n where " + userSchema + ")",
		"pg_type":       "typnamespace in (select n.oid from pg_namespace n where " + userSchema + ")",
		"pg_constraint": "connamespace in (select n.oid from pg_namespace n where " + userSchema + ")",
		"pg_rewrite":    "true", "pg_trigger": "true", "pg_policy": "true", "pg_extension": "true", "pg_namespace": "nspname !~ '^pg_(toast_)?temp_'",
		"pg_operator": "oid >= 16384", "pg_cast": "oid >= 16384", "pg_collation": "oid >= 16384",
		"pg_ts_config": "oid >= 16384", "pg_ts_dict": "oid >= 16384", "pg_foreign_server": "true",
	} {
		sums = append(sums, fmt.Sprintf("select coalesce(sum(hashtext('%s ' || oid || ' ' || xmin)::int8), 0) h from %s where %s", catalog, catalog, where))
	}
	slices.Sort(sums)
	return "select sum(h)::int8 from (" + strings.Join(sums, " union all ") + ") x"
}()

// isAltered reports whether the source's definitions differ from the snapshot's, after describeOnce returned err.
func (c *copying) isAltered(ctx context.Context, err error) (bool, error) {
	_, refused := errors.AsType[dumpError](err)
	switch {
	case errors.Is(err, errAltered):
		return true, nil
	case err != nil && !refused:
		return false, nil
	}
	then, err := count(ctx, c.conn, fingerprint)
	if err != nil {
		return false, sourceError{fmt.Errorf("read catalog: %w", err)}
	}
	conn, err := c.another(ctx, c.enterNow)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	now, err := count(ctx, conn, fingerprint)
	if err != nil {
		return false, sourceError{fmt.Errorf("read catalog: %w", err)}
	}
	return now != then, nil
}
