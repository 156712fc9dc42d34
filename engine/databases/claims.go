package databases

import (
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// BackupClaim returns the id that a backup claims. The database's own id stays
// free for operations that do not disturb a backup.
func BackupClaim(database string) string { return database + "/backup" }

// Restoring and Upgrading describe a restore and an upgrade in their claims.
const (
	Restoring = "a restore"
	Upgrading = "an upgrade"
)

// ScheduledBackup returns the key under which a scheduled backup can be
// cancelled.
func ScheduledBackup(database string) string { return database + "/backup/scheduled" }

// endClaims marks an operation's claims as ending, because its end is about to be
// recorded. It must run before the record becomes visible: a client that sees the
// record may begin the next operation at once. If the record cannot be written,
// others only wait a little before they are refused.
func endClaims(c *core.Claims, op model.DatabaseOperation) {
	backups := BackupClaim(op.Database)
	switch {
	case op.Type == model.OperationBackup:
		c.Ending(backups)
	case op.Type == model.OperationBranch:
		c.Ending(op.NewDatabase)
	case op.NewDatabase != "":
		c.Ending(op.NewDatabase, backups)
	case c.SameOperation(op.Database, backups):
		c.Ending(op.Database, backups)
	default:
		c.Ending(op.Database)
	}
}

// claimAvailable claims a database of the call's organization for an operation
// that needs a running instance, which it wakes if it sleeps. The caller releases it.
func (s *Service) claimAvailable(call *model.Call, id, what string) (model.Database, func(), error) {
	db, release, err := s.claimUnchanging(call, id, what, s.LiveStatus)
	if err != nil {
		return db, nil, err
	}
	hold, err := s.Awaken(db, true)
	if err != nil {
		release()
		return db, nil, err
	}
	return db, func() { hold(); release() }, nil
}

// claimUnchanging is claim, except that it refuses a database with a pending change,
// which another change of its record would erase or precede. [Service.ApplyPending]
// ends such a change as soon as it can.
func (s *Service) claimUnchanging(
	call *model.Call, id, what string, status func(model.Database) (model.DatabaseStatus, string),
) (model.Database, func(), error) {
	db, release, err := s.claim(call, id, what, status)
	if err == nil {
		release, err = refusePending(db, release)
	}
	return db, release, err
}

// refusePending releases a claimed database and refuses it if it has a pending change.
func refusePending(db model.Database, release func()) (func(), error) {
	if db.PendingChange == nil {
		return release, nil
	}
	release()
	return nil, model.Errorf(model.CodeConflict, "an earlier change of the database is not in force yet; try again when it is")
}

// ClaimExclusively claims a database and its backups. The instance may be down, but
// only a restore does without the data. The caller releases both.
func (s *Service) ClaimExclusively(call *model.Call, id, what string) (model.Database, func(), error) {
	db, release, err := s.claim(call, id, what, func(db model.Database) (model.DatabaseStatus, string) {
		if db.Rebuild && what != Restoring {
			return s.LiveStatus(db)
		}
		return db.Status, db.StatusReason
	})
	if err != nil {
		return db, nil, err
	}
	releaseBackups, err := s.claimBackupsFor(call, id, what)
	if err != nil {
		release()
		return db, nil, err
	}
	return db, func() { releaseBackups(); release() }, nil
}

// ClaimBackups claims a database's backups for a request, which may cancel a
// running backup. The caller releases them.
func (s *Service) ClaimBackups(database, what string) (release func(), err error) {
	s.cancelBackupFor(database, what)
	for {
		release, err = s.core.Claims.Take(BackupClaim(database), what)
		if err == nil || !s.cancelBackupFor(database, what) { // no other backup has begun since
			return release, err
		}
	}
}

// claimBackupsFor is ClaimBackups for a call, which may lose its authority while it waits.
func (s *Service) claimBackupsFor(call *model.Call, database, what string) (release func(), err error) {
	release, err = s.ClaimBackups(database, what)
	if err != nil {
		return nil, err
	}
	if err := s.core.CheckAuthority(call); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// cancelBackupFor cancels a running backup in favour of a request: a scheduled
// one for every request, any other only for a restore, an upgrade or the deletion. A backup
// may be waiting for a stuck WAL archive, which is exactly when people want to
// restore. It reports whether there was one.
func (s *Service) cancelBackupFor(id, what string) bool {
	if what == deleting {
		return s.core.Cancels.Cancel(BackupClaim(id), model.Errorf(model.CodeConflict, "the database was deleted"))
	}
	if s.core.Cancels.Cancel(ScheduledBackup(id), model.Errorf(model.CodeConflict, "it gave way to %s and is tried again later", what)) {
		return true
	}
	return (what == Restoring || what == Upgrading) &&
		s.core.Cancels.Cancel(BackupClaim(id), model.Errorf(model.CodeConflict, "it gave way to %s; make another when that is done", what))
}

func (s *Service) claim(
	call *model.Call, id, what string, status func(model.Database) (model.DatabaseStatus, string),
) (model.Database, func(), error) {
	if _, err := s.Database(call, id); err != nil {
		return model.Database{}, nil, err
	}
	release, err := s.core.Claims.Take(id, what)
	if err != nil {
		return model.Database{}, nil, err
	}
	db, err := s.claimed(call, id)
	if err == nil {
		if now, reason := status(db); now != model.DatabaseAvailable {
			err = NotAvailable(db, now, reason)
		}
	}
	if err != nil {
		release()
		return model.Database{}, nil, err
	}
	return db, release, nil
}

// claimed reads a database again that was claimed for a call: it may have changed before the claim, and the call may have
// lost its authority.
func (s *Service) claimed(call *model.Call, id string) (model.Database, error) {
	if err := s.core.CheckAuthority(call); err != nil {
		return model.Database{}, err
	}
	return s.Database(call, id)
}

// RefuseUnavailable returns an error unless a database is available now.
func (s *Service) RefuseUnavailable(db model.Database) error {
	if status, reason := s.LiveStatus(db); status != model.DatabaseAvailable {
		return NotAvailable(db, status, reason)
	}
	return nil
}

// NotAvailable returns the error for an operation on a database that is not
// available. It names the remedy: waiting, except in states that do not end on
// their own.
func NotAvailable(db model.Database, status model.DatabaseStatus, reason string) error {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	switch status {
	case model.DatabaseFailed:
		if db.Rebuild {
			return model.Errorf(model.CodeConflict, "the database has failed%s: its data is not on this machine, so no server can be started on it", reason)
		}
		return model.Errorf(model.CodeConflict, "the database has failed%s and needs a person: "+
			"remove the cause and restart it, or restore a backup", reason)
	case model.DatabaseUnavailable:
		return model.Errorf(model.CodeConflict, "the database is unavailable%s and is being brought back; try again when it is available", reason)
	case model.DatabaseDeleting:
		return model.Errorf(model.CodeConflict, "the database is being deleted%s; it can be brought back from the trash then", reason)
	case model.DatabaseCreating, model.DatabaseImporting:
		return model.Errorf(model.CodeConflict, "the database is %s%s and does not exist if that fails; try again when it is available", status, reason)
	default:
		return model.Errorf(model.CodeConflict, "the database is %s%s; try again when it is available", status, reason)
	}
}

// deleting describes the deletion in its claim.
const deleting = "the deletion"

// ImportClaim returns the key under which a running import can be cancelled.
func ImportClaim(database string) string { return database + "/import" }

// VerificationClaim returns the key under which the verification of a backup, or
// of any backup of a database, can be cancelled.
func VerificationClaim(id string) string { return id + "/verification" }
