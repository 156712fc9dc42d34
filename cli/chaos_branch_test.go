package cli_test

import (
	"context"
	"math/rand/v2"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// branch makes a branch of now or of a marked time, compares its content, and deletes it. A branch of now has what was
// acknowledged before the request, and nothing from after its end.
func (c *chaos) branch(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	in := wire.CreateBranch{Name: c.name("branch")}
	rows := db.copyRows()
	if random.IntN(2) == 0 {
		m, target, ok := c.reachable(ctx, random, api, db)
		if !ok || target.TargetTime == nil {
			return false
		}
		in.At, rows = target.TargetTime, m.rows
	}
	c.makeNew(ctx, api, db, in.Name, rows, func() (wire.Operation, error) {
		made, err := api.CreateBranch(ctx, db.id, in)
		if err != nil || in.At != nil {
			return made.Operation, err
		}
		op, err := c.awaitOperation(ctx, api, made.Operation)
		rows.grow(len(db.copyRows().rows), possible)
		if err != nil { // the caller waits again, and judges
			return made.Operation, nil
		}
		return op, nil
	}, wire.CodeValidation) // without a backup there may be nothing to restore
	return true
}
