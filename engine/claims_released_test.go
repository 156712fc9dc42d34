package engine

import (
	"testing"

	"holdfast/engine/meta"
)

// A check of the passwords of a database whose record is gone leaves no claim.
func TestPasswordCheckWithoutARecord(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	a.awaitIdle(t)
	record := a.record(t, db.ID)
	run(t, c, "alter role app password 'chosen by SQL'")
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Delete(db.ID) }); err != nil {
		t.Fatal(err)
	}
	a.Databases.SampleOne(t.Context(), record)
	if claimed := a.claimed(); len(claimed) > 0 {
		t.Errorf("claimed: %v", claimed)
	}
}
