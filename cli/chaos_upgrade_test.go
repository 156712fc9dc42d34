package cli_test

import (
	"context"
	"math/rand/v2"
	"strings"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// upgrade upgrades a database to the newest version of PostgreSQL that this machine has. Nothing is lost by that, and undo
// brings back the version and the rows of before.
func (c *chaos) upgrade(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.seizeDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.Unlock()
	db.access.Lock()
	defer db.access.Unlock()
	record, err := api.GetDatabase(ctx, db.id)
	if err != nil || record.Version == nil {
		return false
	}
	major, _, _ := strings.Cut(*record.Version, ".")
	if major == c.newest {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*chaosPatience)
	defer cancel()
	c.replace(ctx, api, db, "upgrade", nil, func() (wire.Operation, error) {
		return api.UpgradeDatabase(ctx, db.id, wire.UpgradeDatabase{Version: c.newest})
	})
	return true
}
