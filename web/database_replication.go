package web

import (
	"cmp"

	"holdfast/engine/databases"
)

// replicationData is what database_replication.html shows.
type replicationData struct {
	databaseData
	databases.Replication
}

func (req *request) replication(db databaseData, cause error) (answer, error) {
	r, err := req.engine.Databases.Replication(req.r.Context(), req.call, db.ID)
	return answer{page: "database_replication.html", data: replicationData{db, r}}, cmp.Or(cause, err)
}

// replicationSwitch switches logical replication on or off.
func (req *request) replicationSwitch() (answer, error) {
	on := req.form("logical_replication") == "on"
	change := databases.Change{LogicalReplication: &on, DropSlots: req.form("drop_slots") != ""}
	if _, err := req.engine.Databases.Update(req.r.Context(), req.call, req.id(), change); err != nil {
		return answer{}, err
	}
	if on {
		return done(req.databasePath("replication"), "replication_on"), nil
	}
	return done(req.databasePath("replication"), "replication_off"), nil
}

func (req *request) replicationSlotDrop() (answer, error) {
	err := req.confirm(req.form("slot"))
	if err == nil {
		err = req.engine.Databases.ReplicationSlotDrop(req.r.Context(), req.call, req.id(), req.form("slot"), req.form("force") != "")
	}
	return done(req.databasePath("replication"), "slot_dropped"), err
}
