package recovery

import (
	"fmt"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// backupEnded writes the audit entry of a backup's end and sends the event. A backup that the appliance's stop or
// another operation cut short sends none: the operator need not be alerted.
func (s *Service) backupEnded(db model.Database, b model.Backup, err error, cut bool) {
	resource := model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name}
	call := s.core.System(model.ActionBackupEnd, db.Organization, resource)
	call.Note("type", string(b.Type))
	s.core.Finish(call, err)
	event := model.Event{
		Type: model.EventBackupCompleted, Organization: db.Organization, Resource: resource, Took: s.core.Clock().Sub(b.StartedAt),
		Message: fmt.Sprintf("The %s backup of %s is complete.", b.Type, db.Name),
	}
	if err != nil {
		event.Type = model.EventBackupFailed
		event.Message = fmt.Sprintf("The %s backup of %s failed: %s", b.Type, db.Name, databases.OperationMessage(err))
	}
	if !cut {
		s.core.Emit(event)
	}
}
