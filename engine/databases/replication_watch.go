package databases

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// worthDropping is how much WAL a slot must retain to be dropped for a full disk, in
// bytes.
const worthDropping = 64 << 20

// watchSlots acts on the slots that a sample has found, before the sample is
// stored: it reports those that were lost since the last one, drops those that nobody may
// read or that fill the disk, and takes the archive's own slot from a client.
func (s *Service) watchSlots(ctx context.Context, conn *pgx.Conn, db model.Database, slots []postgres.Slot) {
	if db.LogicalReplication {
		if ended, err := postgres.FreeOwnSlot(ctx, conn, WALSlot); err != nil || ended {
			s.core.Log.Warn("a client reads the replication slot of the archive: its session is ended", "database", db.ID, "error", err)
		}
	}
	last, _ := s.Statistics.Get(db.ID)
	for _, slot := range slots {
		if slot.Lost() && hadSlot(last.Slots, slot.Name) {
			s.reportSlot(db, slot, model.ActionSlotLost, "it retained more WAL than the limit allows; its client must copy everything again")
		}
	}
	if reason := s.dropReason(db); reason != "" {
		for _, slot := range slots {
			if !db.LogicalReplication || !slot.Active && slot.Retained >= worthDropping {
				s.dropWatched(ctx, conn, db, slot, reason)
			}
		}
	}
}

// hadSlot reports whether a slot was usable when the last sample was taken.
func hadSlot(last []postgres.Slot, name string) bool {
	for _, slot := range last {
		if slot.Name == name {
			return !slot.Lost()
		}
	}
	return false
}

// dropReason returns why slots of the database are to be dropped, "" if they are not.
func (s *Service) dropReason(db model.Database) string {
	if !db.LogicalReplication {
		return "logical replication is off, and nobody may read it"
	}
	host, err := core.MeasureHost(s.core.Config.DataDir)
	if err == nil && float64(host.DiskFree) < s.core.Config.Advice.DiskFree/2*float64(host.DiskTotal) {
		return "nothing reads it, and the WAL that it retains fills the disk; its client must copy everything again"
	}
	return ""
}

// dropWatched drops a slot, unless an operation changes the database.
func (s *Service) dropWatched(ctx context.Context, conn *pgx.Conn, db model.Database, slot postgres.Slot, reason string) {
	release, err := s.core.Claims.TakeBriefly(db.ID, "the removal of a replication slot")
	if err != nil {
		return // busy: the next sample tries again
	}
	defer release()
	now, err := s.Record(db.ID)
	if err != nil || now.PendingChange != nil || now.LogicalReplication != db.LogicalReplication || now.Generation != db.Generation {
		return
	}
	err = postgres.DropSlot(ctx, conn, WALSlot, slot.Name, false)
	switch {
	case err == nil:
		s.reportSlot(db, slot, model.ActionSlotDropped, reason)
	case !errors.Is(err, postgres.ErrNoSlot):
		s.core.Log.Error("drop a replication slot", "database", db.ID, "slot", slot.Name, "error", err)
	}
}

// reportSlot reports that a client's slot is of no use any more.
func (s *Service) reportSlot(db model.Database, slot postgres.Slot, action model.Action, reason string) {
	s.core.Log.Warn("a replication slot is lost", "database", db.ID, "slot", slot.Name, "retained_bytes", slot.Retained, "reason", reason)
	s.recordSlot(db, slot.Name, action, reason)
}

// ReportUpgraded reports that an upgrade of a database has dropped a client's slot.
func (s *Service) ReportUpgraded(db model.Database, slot string) {
	const reason = "the upgrade dropped it; its client must copy everything again"
	s.core.Log.Warn("a replication slot is lost", "database", db.ID, "slot", slot, "reason", reason)
	s.recordSlot(db, slot, model.ActionSlotDropped, reason)
}

// recordSlot adds the loss of a slot to the audit log and sends its event.
func (s *Service) recordSlot(db model.Database, slot string, action model.Action, reason string) {
	call := s.core.System(action, db.Organization, DatabaseResource(db))
	call.Note("slot", slot)
	call.Note("reason", reason)
	s.core.Finish(call, nil)
	s.core.Emit(model.Event{
		Type: model.EventReplicationSlotLost, Organization: db.Organization, Resource: DatabaseResource(db),
		Message: fmt.Sprintf("The replication slot %s of the database %s is lost: %s.", slot, db.Name, reason),
	})
}
