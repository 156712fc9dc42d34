package web

import (
	"strconv"

	"holdfast/engine/databases"
)

// propertiesForm holds the fields of the forms that change a database's properties, as they are or were typed.
type propertiesForm struct {
	Project, Every, Limit string
	Day, Start, Minutes   string // of the maintenance window
	KeptDays, Sleep, Name string
}

func (req *request) propertiesForm(db databaseData) propertiesForm {
	every, sleep, start, minutes := "", "", "", "120"
	if db.BackupEvery > 0 {
		every = db.BackupEvery.String()
	}
	if db.SleepAfter > 0 {
		sleep = db.SleepAfter.String()
	}
	if window := db.MaintenanceWindow; window.Minutes > 0 {
		start, minutes = window.StartTime(), strconv.Itoa(window.Minutes)
	}
	return propertiesForm{
		Project: req.typed("project", db.Project), Every: req.typed("backup_every", every),
		Limit: req.typed("connection_limit", orEmpty(db.ConnectionLimit)),
		Day:   req.typed("window_day", db.MaintenanceWindow.Day), Start: req.typed("window_start", start), Minutes: req.typed("window_minutes", minutes),
		KeptDays: req.typed("backup_retention_days", orEmpty(int(db.BackupRetention/day))),
		Sleep:    req.typed("sleep_after", sleep), Name: req.form("name"),
	}
}

// orEmpty formats a number for a field, "" if it is zero.
func orEmpty(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// typedSettings returns the settings with what was typed in place of what the database has of its own.
func (req *request) typedSettings(all []databases.SettingView) []databases.SettingView {
	for i, s := range all {
		all[i].Own = req.typed(settingPrefix+s.Name, s.Own)
	}
	return all
}
