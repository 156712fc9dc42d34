package cli_test

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// chaosExtensions are of both kinds: those that owners may create, and those that the appliance creates for them.
var chaosExtensions = []string{"pg_trgm", "hstore", "bloom", "tablefunc"}

// chaosCreated is what is known of the extensions of a database, as long as its data are not replaced.
type chaosCreated struct {
	of   *ledger
	have map[string][]bool // by name; each may be so
}

// extensions returns what is known of the extensions of the data that is in use.
func (d *chaosDatabase) extensions() map[string][]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.created.of != d.now {
		d.created = chaosCreated{of: d.now, have: map[string][]bool{}}
	}
	return d.created.have
}

// changeExtension creates an extension or drops one.
func (c *chaos) changeExtension(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickToChange(random)
	if db == nil {
		return false
	}
	defer db.endChange()
	name, creates := chaosExtensions[random.IntN(len(chaosExtensions))], random.IntN(3) > 0
	known := db.extensions()
	var is outcome
	if creates {
		_, err := api.SetExtension(ctx, db.id, wire.SetExtension{Name: name})
		is = c.outcome("create an extension", err, wire.CodeConflict)
	} else {
		_, err := api.DeleteExtension(ctx, db.id, name)
		allowed := []wire.ErrorCode{wire.CodeConflict}
		if has := known[name]; len(has) != 1 || !has[0] {
			allowed = append(allowed, wire.CodeNotFound)
		}
		is = c.outcome("drop an extension", err, allowed...)
	}
	switch {
	case is == done:
		known[name] = []bool{creates}
	case is == unknown && len(known[name]) > 0:
		known[name] = append(known[name], creates)
	}
	return true
}

// checkExtensions checks that the extensions of a database are those that were acknowledged.
func (c *chaos) checkExtensions(ctx context.Context, db *chaosDatabase, ownerURL string) {
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		c.t.Errorf("the extensions of %s: %v", db, err)
		return
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, "select extname::text from pg_extension")
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.t.Errorf("the extensions of %s: %v", db, err)
		return
	}
	known := db.extensions()
	for name, may := range known {
		if has := slices.Contains(found, name); !slices.Contains(may, has) {
			c.t.Errorf("%s has the extension %s: %t, and may: %v", db, name, has, may)
		} else {
			known[name] = []bool{has}
		}
	}
}
