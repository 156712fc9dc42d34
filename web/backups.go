package web

import (
	"slices"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// backupsData is what database_backups.html shows.
type backupsData struct {
	databaseData
	core.List[model.Backup]
	Recovery recovery.Recovery
	Offsite  offsiteData
	Timeline timeline
	Export   *recovery.ExportView // nil for none
}

func (req *request) backups(db databaseData, cause error) (answer, error) {
	list, err := req.engine.Recovery.BackupList(req.call, db.ID, recovery.BackupFilter{}, req.page())
	if err != nil {
		return answer{}, err
	}
	recovery, err := req.engine.Recovery.RecoveryGet(req.r.Context(), req.call, db.ID)
	if cause == nil {
		cause = err // show the backups anyway
	}
	data := backupsData{databaseData: db, List: list, Recovery: recovery, Offsite: newOffsiteData(req.engine.Offsite.Status()), Timeline: newTimeline(db.ID, recovery, req.engine.Now())}
	about := req.call.Resource // the page is about the database
	export, err := req.engine.Recovery.ExportGet(req.call, db.ID, "")
	req.call.Resource = about
	switch model.CodeOf(err) {
	case "":
		data.Export = &export
	case model.CodeNotFound:
	default:
		return answer{}, err
	}
	return answer{page: "database_backups.html", data: data, live: slices.ContainsFunc(list.Items, verifying)}, cause
}

func verifying(b model.Backup) bool { return b.Verification.Status == model.VerificationRunning }

func (req *request) backupCreate() (answer, error) {
	_, err := req.engine.Recovery.BackupCreate(req.call, req.id())
	return done(req.databasePath("backups"), "backup_started"), err
}

// backupData is what backup.html shows.
type backupData struct {
	databaseData
	Backup   model.Backup
	Verifies bool // whether the appliance verifies backups
}

func (req *request) backup(db databaseData, cause error) (answer, error) {
	b, err := req.engine.Recovery.BackupGet(req.call, db.ID, req.r.PathValue("backup"))
	if err != nil {
		return answer{}, err
	}
	live := b.Status == model.BackupPending || b.Status == model.BackupRunning || verifying(b)
	return answer{page: "backup.html", data: backupData{db, b, req.engine.Core.Config.VerifyBackups}, live: live}, cause
}

func (req *request) backupRestore() (answer, error) {
	err := req.confirmDatabase()
	if err == nil {
		_, err = req.engine.Recovery.BackupRestore(req.call, req.id(), req.r.PathValue("backup"), nil)
	}
	return done(req.databasePath("backups"), "restore_started"), err
}

func (req *request) backupDelete() (answer, error) {
	err := req.confirmDatabase()
	if err == nil {
		err = req.engine.Recovery.BackupDelete(req.call, req.id(), req.r.PathValue("backup"))
	}
	return done(req.databasePath("backups"), "backup_deleted"), err
}

func (req *request) backupPin() (answer, error) {
	pinned, what := req.form("pinned") == "true", "backup_unpinned"
	if pinned {
		what = "backup_pinned"
	}
	_, err := req.engine.Recovery.BackupPin(req.call, req.id(), req.r.PathValue("backup"), pinned, req.form("reason"))
	return done(req.databasePath("backups/"+req.r.PathValue("backup")), what), err
}

// exportCreate requests an export of a database beside the main one, which the page of the roles lists.
func (req *request) exportCreate() (answer, error) {
	_, err := req.engine.Recovery.ExportCreate(req.r.Context(), req.call, req.id(), req.r.URL.Query().Get("dbname"))
	return done(req.databasePath("roles"), "export_requested"), err
}

// export redirects to a short-lived URL of the newest export.
func (req *request) export() (answer, error) {
	export, err := req.engine.Recovery.ExportGet(req.call, req.id(), req.r.URL.Query().Get("dbname"))
	if err == nil && export.DownloadPath == "" {
		err = model.Errorf(model.CodeConflict, "the export is %s; try again when it is ready", export.Status)
	}
	return answer{redirect: export.DownloadPath}, err
}

func (req *request) recoveryUndo() (answer, error) {
	err := req.confirmDatabase()
	if err == nil {
		_, err = req.engine.Recovery.RecoveryUndo(req.call, req.id())
	}
	return done(req.databasePath("backups"), "undo_started"), err
}
