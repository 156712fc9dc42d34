package databases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// WALSlot is the appliance's own replication slot, which keeps WAL until it is archived.
const WALSlot = "holdfast"

// slotLimit is the setting that bounds what a slot retains.
const slotLimit = "max_slot_wal_keep_size"

// The bounds of what a slot retains: a part of the free disk space, within limits.
// The WAL that is not archived has the same bound, so it is never less than without
// replication.
const (
	slotShare   = 8
	leastRetain = 4 << 30
	mostRetain  = 64 << 30
)

// replicationSettings returns the settings of a database whose changes can be
// streamed.
func (s *Service) replicationSettings() map[string]string {
	keep := int64(leastRetain)
	if host, err := core.MeasureHost(s.core.Config.DataDir); err == nil {
		keep = clamp(host.DiskFree/slotShare, leastRetain, mostRetain)
	}
	return postgres.ReplicationSettings(keep)
}

// hasSlots reports whether the data directory has slots of tenants: PostgreSQL does
// not start without wal_level=logical while there is a logical one. That is so if the appliance
// died while it switched replication off, or after an undo.
func (s *Service) hasSlots(db model.Database) bool {
	slots, err := os.ReadDir(filepath.Join(s.DataDirectory(db.ID, db.Generation), "pg_replslot"))
	return err == nil && slices.ContainsFunc(slots, func(e os.DirEntry) bool { return e.IsDir() && e.Name() != WALSlot })
}

// switchReplication lets clients stream the changes of a database, or ends that. It
// restarts the server. If it fails, nothing is changed, except that slots may have been dropped.
func (s *Service) switchReplication(ctx context.Context, call *model.Call, id string, change Change) (View, error) {
	on := *change.LogicalReplication
	db, release, err := s.claimAvailable(call, id, "a change of its replication")
	if err != nil {
		return View{}, err
	}
	defer release()
	if db, err = s.changed(call, db, Change{}); err != nil {
		return View{}, err
	}
	if db.LogicalReplication == on {
		if err := s.core.Change(call, func(*meta.Tx) error { return nil }); err != nil {
			return View{}, err
		}
		return s.View(db)
	}
	if !on {
		if err := s.refuseSlots(ctx, db, change.DropSlots); err != nil {
			return View{}, err
		}
	}
	releaseBackups, err := s.claimBackupsFor(call, id, "a restart")
	if err != nil {
		return View{}, err
	}
	defer releaseBackups()
	call.Note("logical_replication", fmt.Sprintf("%t → %t", db.LogicalReplication, on))
	next, err := s.beginChange(call, id, func(d *model.Database) {
		s.setReplication(d, on)
		d.UpdatedAt = s.core.Clock()
		if !on { // after a crash, the next start ends the clients that stream
			d.PendingChange.EndRole = model.ReplicationUser(d.Owner)
		}
	})
	if err != nil {
		return View{}, err
	}
	ctx = context.WithoutCancel(ctx)
	var dropped []postgres.Slot
	restarts := on
	if !on {
		dropped, err = s.closeReplication(ctx, next, change.DropSlots)
		call.Note("slots_dropped", fmt.Sprint(len(dropped)))
		restarts = err == nil
	}
	if restarts {
		err = s.applySettings(ctx, next)
	}
	if err == nil && on {
		err = s.openReplication(ctx, next)
	}
	if err != nil {
		return View{}, errors.Join(ServerFailed(err), s.takeBackReplication(ctx, db, restarts, dropped))
	}
	next, err = s.concludeChange(call, id)
	if err != nil {
		return View{}, err
	}
	return s.View(next)
}

// setReplication sets the switch in a record. Each time it is switched on, the role
// gets another password.
func (s *Service) setReplication(d *model.Database, on bool) {
	d.LogicalReplication, d.ReplicationPassword = on, nil
	if on {
		d.ReplicationPassword = s.core.Sealer.Seal(passwordPurpose(d.ID, model.ReplicationUser(d.Owner)), model.GeneratePassword(core.RandomBytes()))
	}
}

// openReplication admits clients that stream to a server that has the settings and roles for them.
func (s *Service) openReplication(ctx context.Context, db model.Database) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	return s.applyAccess(ctx, db)
}

// closeReplication ends the clients that stream, keeps others away and drops their slots: PostgreSQL does not start
// without wal_level=logical while there is a logical slot. It returns the slots that it dropped, also if it fails.
func (s *Service) closeReplication(ctx context.Context, db model.Database, drop bool) (dropped []postgres.Slot, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	if err := s.applyAccess(ctx, db); err != nil {
		return nil, err
	}
	if err := s.applyOrRestart(ctx, db.ID, s.provisioning(db)); err != nil {
		return nil, err
	}
	if err := s.applyOrRestart(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.EndSessionsOf(ctx, conn, model.ReplicationUser(db.Owner))
	}); err != nil {
		return nil, err
	}
	slots, err := s.slots(ctx, db)
	if err == nil && !drop {
		err = slotsLeft(slots)
	}
	if err != nil {
		return nil, err
	}
	for _, slot := range slots {
		err := s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
			return postgres.DropSlot(ctx, conn, WALSlot, slot.Name, true)
		})
		if err == nil {
			dropped = append(dropped, slot)
		} else if !errors.Is(err, postgres.ErrNoSlot) {
			return dropped, err
		}
	}
	return dropped, nil
}

// takeBackReplication undoes a switch that failed: the record is as it was in db, and the server follows that, at once or
// as soon as it can. restarts says whether the server was given the settings of the switch. The slots that were dropped are lost.
func (s *Service) takeBackReplication(ctx context.Context, db model.Database, restarts bool, dropped []postgres.Slot) error {
	for _, slot := range dropped {
		s.reportSlot(db, slot, model.ActionSlotDropped, "it was dropped to switch logical replication off, which then failed; its client must copy everything again")
	}
	err := s.takeBack(ctx, db.ID, func(d *model.Database) {
		d.LogicalReplication, d.ReplicationPassword, d.UpdatedAt = db.LogicalReplication, db.ReplicationPassword, db.UpdatedAt
	})
	if restarts { // if it does not start with these settings now, the supervisor goes on trying
		err = errors.Join(err, s.applySettings(ctx, db))
	}
	return err
}

// refuseSlots refuses to end the replication of a database with slots, unless they
// may be dropped.
func (s *Service) refuseSlots(ctx context.Context, db model.Database, drop bool) error {
	slots, err := s.slots(ctx, db)
	if err != nil || drop {
		return ServerFailed(err)
	}
	return slotsLeft(slots)
}

func slotsLeft(slots []postgres.Slot) error {
	if len(slots) == 0 {
		return nil
	}
	names := make([]string, len(slots))
	for i, slot := range slots {
		names[i] = slot.Name
	}
	return model.Errorf(model.CodeConflict, "logical_replication: there are replication slots (%s), whose clients would have to copy everything again: "+
		"drop them first, or set drop_slots as well", strings.Join(names, ", "))
}

// slots returns the replication slots of a running database.
func (s *Service) slots(ctx context.Context, db model.Database) (slots []postgres.Slot, err error) {
	return slots, s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) (err error) {
		slots, err = postgres.Slots(ctx, conn, WALSlot)
		return err
	})
}
