package engine

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/testenv"
)

// Nothing can claim a database between the appliance's start and the database's own: such a claim would have kept the
// database from being started at all.
func TestStartsComeFirst(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	const count = 7
	fillPool(t, cfg, count)
	a := startEngineOn(t, cfg)
	var all []model.Database
	for n := range count { // more than are started at a time
		db, _ := a.createDatabase(t, fmt.Sprintf("d%d", n))
		all = append(all, db.Database)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := startEngineOn(t, cfg)
	for _, db := range all {
		if _, release, err := b.Databases.ClaimExclusively(b.call(model.ActionBackupRestore), db.ID, databases.Restoring); err == nil {
			if state, _, _ := b.Databases.Instances.Status(db.ID); state == postgres.StateStopped {
				t.Errorf("%s was claimed before it was started", db.Name)
			}
			release()
		}
	}
	for _, db := range all {
		testenv.Within(t, time.Minute, "the start of "+db.Name, func() bool {
			state, _, _ := b.Databases.Instances.Status(db.ID)
			return state == postgres.StateRunning
		})
	}
}
