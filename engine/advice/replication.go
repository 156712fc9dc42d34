package advice

import (
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// replicationSlots reports slots that are lost, or soon will be because no client
// reads them.
func replicationSlots(_ Facts, db Database) (found []model.Recommendation) {
	for _, slot := range db.Slots {
		switch {
		case slot.Lost():
			found = append(found, slotAdvice(db, slot, "replication_slot_lost", model.SeverityCritical, "A replication slot is lost",
				fmt.Sprintf("The server has removed WAL that the client of the slot %s had not read. The client must copy everything again.", slot.Name)))
		case slot.Safe != nil && *slot.Safe < slot.Retained:
			found = append(found, slotAdvice(db, slot, "replication_slot_behind", model.SeverityWarning, "A replication slot retains much WAL",
				fmt.Sprintf("The slot %s retains %d MB of WAL, more than half of what it may. %s After %d MB more it is lost, and its client must copy everything again.",
					slot.Name, slot.Retained>>20, reading(slot), max(*slot.Safe, 0)>>20)))
		}
	}
	return found
}

// reading says whether a client reads a slot.
func reading(slot postgres.Slot) string {
	if slot.Active {
		return "A client reads it, but not fast enough."
	}
	return "No client reads it."
}

func slotAdvice(db Database, slot postgres.Slot, code string, severity model.Severity, title, message string) model.Recommendation {
	return model.Recommendation{
		Code: code, Severity: severity, Category: model.CategoryCapacity, Title: title, Message: message, Resource: db.resource(),
		Evidence: map[string]any{"slot": slot.Name, "active": slot.Active, "retained_bytes": slot.Retained, "lag_bytes": slot.Lag, "wal_status": slot.Status},
		Action:   call("DELETE", db.Database, "/replication/slots/"+slot.Name, nil),
		Caution:  "This drops the slot: its client, if it still exists, must copy everything again.",
	}
}
