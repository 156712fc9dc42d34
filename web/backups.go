package web

import (
	"slices"

	"holdfast/engine"
	"holdfast/engine/model"
)

// backupsData is what database_backups.html shows.
type backupsData struct {
	databaseData
	engine.List[model.Backup]
	Recovery engine.Recovery
	Timeline timeline
	Export   *engine.ExportView // nil for none
}

func (v *visit) backups() (answer, error) { return v.backupsPage(nil) }

func (v *visit) backupsPage(cause error) (answer, error) {
	db, err := v.withDatabase("backups")
	if err != nil {
		return answer{}, err
	}
	list, err := v.engine.BackupList(v.call, db.ID, v.page())
	if err != nil {
		return answer{}, err
	}
	recovery, err := v.engine.RecoveryGet(v.r.Context(), v.call, db.ID)
	if cause == nil {
		cause = err // the backups are shown all the same
	}
	data := backupsData{databaseData: db, List: list, Recovery: recovery, Timeline: newTimeline(db.ID, recovery, v.engine.Now())}
	about := v.call.Resource // the page is about the database
	export, err := v.engine.ExportGet(v.call, db.ID)
	v.call.Resource = about
	switch model.CodeOf(err) {
	case "":
		data.Export = &export
	case model.CodeNotFound:
	default:
		return answer{}, err
	}
	live := db.busy() || slices.ContainsFunc(list.Items, proving)
	return answer{page: "database_backups.html", title: db.title(), data: data, live: live}, cause
}

func proving(b model.Backup) bool { return b.Verification.Status == model.VerificationRunning }

func (v *visit) backupCreate() (answer, error) {
	if _, err := v.engine.BackupCreate(v.call, v.r.PathValue("id")); err != nil {
		return v.backupsPage(err)
	}
	return done(v.databasePath("backups"), "backup_started"), nil
}

// backupData is what backup.html shows.
type backupData struct {
	databaseData
	Backup model.Backup
	Proofs bool // whether backups are proven
}

func (v *visit) backup() (answer, error) { return v.backupPage(nil) }

func (v *visit) backupPage(cause error) (answer, error) {
	db, err := v.withDatabase("backups")
	if err != nil {
		return answer{}, err
	}
	b, err := v.engine.BackupGet(v.call, db.ID, v.r.PathValue("backup"))
	if err != nil {
		return answer{}, err
	}
	live := db.busy() || b.Status == model.BackupPending || b.Status == model.BackupRunning || proving(b)
	return answer{page: "backup.html", title: db.title(), data: backupData{db, b, v.engine.About().Proofs}, live: live}, cause
}

func (v *visit) backupRestore() (answer, error) {
	err := v.confirmDatabase()
	if err == nil {
		_, err = v.engine.BackupRestore(v.call, v.r.PathValue("id"), v.r.PathValue("backup"))
	}
	if err != nil {
		return v.backupPage(err)
	}
	return done(v.databasePath("backups"), "restore_started"), nil
}

func (v *visit) backupDelete() (answer, error) {
	err := v.confirmDatabase()
	if err == nil {
		err = v.engine.BackupDelete(v.call, v.r.PathValue("id"), v.r.PathValue("backup"))
	}
	if err != nil {
		return v.backupPage(err)
	}
	return done(v.databasePath("backups"), "backup_deleted"), nil
}

func (v *visit) backupPin() (answer, error) {
	pinned := v.form("pinned") == "true"
	if _, err := v.engine.BackupPin(v.call, v.r.PathValue("id"), v.r.PathValue("backup"), pinned, v.form("reason")); err != nil {
		return v.backupPage(err)
	}
	what := "backup_unpinned"
	if pinned {
		what = "backup_pinned"
	}
	return done(v.databasePath("backups/"+v.r.PathValue("backup")), what), nil
}

// export leads to the newest export, at a URL that works for a while.
func (v *visit) export() (answer, error) {
	export, err := v.engine.ExportGet(v.call, v.r.PathValue("id"))
	if err == nil && export.DownloadPath == "" {
		err = model.Errorf(model.CodeConflict, "the export is %s; try again when it is ready", export.Status)
	}
	return answer{redirect: export.DownloadPath}, err
}

func (v *visit) recoveryUndo() (answer, error) {
	err := v.confirmDatabase()
	if err == nil {
		_, err = v.engine.RecoveryUndo(v.call, v.r.PathValue("id"))
	}
	if err != nil {
		return v.backupsPage(err)
	}
	return done(v.databasePath("backups"), "undo_started"), nil
}
