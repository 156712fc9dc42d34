package engine

import (
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// tell hands an event to whoever wants to know.
func (e *Engine) tell(event model.Event) {
	if e.cfg.Observe == nil {
		return
	}
	event.ID, event.At = e.newID(model.ResourceAuditEntry), e.clock()
	e.cfg.Observe(event)
}

// backupEnded audits and tells how a backup ended. One that was cut short, by
// the end of the appliance or by what it gave way to, is no failure to wake
// anybody for.
func (e *Engine) backupEnded(db model.Database, b model.Backup, err error, cut bool) {
	resource := model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name}
	call := e.system(model.ActionBackupEnd, db.Organization, resource)
	call.Note("type", string(b.Type))
	e.Finish(call, err)
	event := model.Event{
		Type: model.EventBackupCompleted, Organization: db.Organization, Resource: resource, Took: e.clock().Sub(b.StartedAt),
		Message: fmt.Sprintf("The %s backup of %s is complete.", b.Type, db.Name),
	}
	if err != nil {
		event.Type = model.EventBackupFailed
		event.Message = fmt.Sprintf("The %s backup of %s failed: %s", b.Type, db.Name, operationMessage(err))
	}
	if !cut {
		e.tell(event)
	}
}

// tellState tells that a database has failed, or is back after that. failed
// says whether it had before.
func (e *Engine) tellState(db model.Database, failed bool, now postgres.State, reason string) {
	event := model.Event{Organization: db.Organization, Resource: databaseResource(db)}
	switch {
	case now == postgres.StateFailed && !failed:
		event.Type, event.Message = model.EventDatabaseFailed, fmt.Sprintf("The database %s does not start: %s", db.Name, reason)
	case now == postgres.StateRunning && failed:
		event.Type, event.Message = model.EventDatabaseRecovered, fmt.Sprintf("The database %s is running again.", db.Name)
	default:
		return
	}
	e.tell(event)
}

// diskRelief is by how much more of the disk must be free again before a
// nearly full one is told of anew.
const diskRelief = 0.02

// watchDisk tells when the disk is nearly full, once each time. told says
// whether that was told; the answer is what to pass next.
func (e *Engine) watchDisk(told bool) bool {
	host, err := measureHost(e.cfg.DataDir)
	if err != nil {
		e.log.Error("watch the disk", "error", err)
		return told
	}
	free := float64(host.DiskFree) / float64(max(host.DiskTotal, 1))
	switch {
	case !told && free < e.cfg.Advice.DiskFree:
		e.log.Warn("the disk is nearly full", "free_bytes", host.DiskFree, "total_bytes", host.DiskTotal)
		e.tell(model.Event{
			Type:    model.EventDiskNearlyFull,
			Message: fmt.Sprintf("%.1f %% of the disk is free (%d of %d bytes).", free*100, host.DiskFree, host.DiskTotal),
		})
		return true
	case told && free >= e.cfg.Advice.DiskFree+diskRelief:
		return false
	default:
		return told
	}
}
