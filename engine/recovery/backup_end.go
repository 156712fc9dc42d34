package recovery

import "holdfast/engine/model"

// backupEnded writes the audit entry of a backup's end.
func (s *Service) backupEnded(db model.Database, b model.Backup, err error) {
	call := s.core.System(model.ActionBackupEnd, db.Organization, model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name})
	call.Note("type", string(b.Type))
	s.core.Finish(call, err)
}
