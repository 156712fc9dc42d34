package web

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// propertiesData is what database_settings.html shows.
type propertiesData struct {
	databaseData
	Projects []model.Project
	Form     propertiesForm
	Settings []databases.SettingView
	Restart  bool // as ticked
	Upgrade  upgradeData
}

// Areas returns the settings in groups, as the catalogue orders them.
func (d propertiesData) Areas() (areas [][]databases.SettingView) {
	for _, s := range d.Settings {
		if n := len(areas); n == 0 || areas[n-1][0].Area != s.Area {
			areas = append(areas, nil)
		}
		areas[len(areas)-1] = append(areas[len(areas)-1], s)
	}
	return areas
}

// WindowDays returns the days on which a maintenance window can open.
func (propertiesData) WindowDays() []string { return model.WindowDays() }

func (req *request) databaseSettings(db databaseData, cause error) (answer, error) {
	projects, err := req.engine.Access.Projects(req.call)
	data := propertiesData{databaseData: db, Projects: projects, Form: req.propertiesForm(db), Restart: req.checked("restart")}
	if err == nil && db.Status == model.DatabaseAvailable {
		data.Settings, err = req.engine.Databases.SettingList(req.r.Context(), req.call, db.ID)
		data.Settings = req.typedSettings(data.Settings)
	}
	if err == nil && !db.Sandbox {
		data.Upgrade, err = req.upgradeOf(db)
	}
	return answer{page: "database_settings.html", data: data}, cmp.Or(cause, err)
}

// databaseUpdate changes what the form of a database's properties has. An empty field
// restores a default.
func (req *request) databaseUpdate() (answer, error) {
	every, err := time.Duration(0), error(nil)
	if text := strings.ReplaceAll(req.form("backup_every"), " ", ""); text != "" {
		if every, err = time.ParseDuration(text); err != nil || every <= 0 {
			return answer{}, model.Invalid("backup_every", "must be a time such as 6h or 90m, or empty for the appliance's")
		}
	}
	limit, err := req.number("connection_limit")
	if err != nil {
		return answer{}, err
	}
	var window model.MaintenanceWindow
	if start := strings.TrimSpace(req.form("window_start")); start != "" {
		minutes, err := req.number("window_minutes")
		if err == nil {
			window, err = model.NewMaintenanceWindow("maintenance_window", req.form("window_day"), start, minutes)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return req.changeDatabase(databases.Change{
		Project: new(req.form("project")), BackupEvery: &every, ConnectionLimit: &limit, MaintenanceWindow: &window,
	})
}

// settingPrefix begins the names of the fields of PostgreSQL's settings.
const settingPrefix = "setting."

// settingsUpdate changes the settings whose fields differ from what the database has
// of its own. An empty field restores a default; a setting without a field stays.
func (req *request) settingsUpdate() (answer, error) {
	all, err := req.engine.Databases.SettingList(req.r.Context(), req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	change := databases.SettingsChange{Settings: map[string]*string{}, Restart: req.checked("restart")}
	for _, s := range all {
		field := settingPrefix + s.Name
		switch text := strings.TrimSpace(req.form(field)); {
		case !req.r.PostForm.Has(field), text == s.Own:
		case text == "":
			change.Settings[s.Name] = nil
		default:
			change.Settings[s.Name] = &text
		}
	}
	if len(change.Settings) == 0 {
		return answer{}, model.Invalid("settings", "no field differs from what the database has")
	}
	_, err = req.engine.Databases.SettingsUpdate(req.r.Context(), req.call, req.id(), change)
	return done(req.databasePath("settings"), "settings_updated"), err
}

// number returns the number in a field, 0 if it is empty.
func (req *request) number(field string) (int, error) {
	text := strings.TrimSpace(req.form(field))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return 0, model.Invalid(field, "must be a whole number above 0, or empty for the default")
	}
	return int(n), nil
}

// databaseRename renames a database.
func (req *request) databaseRename() (answer, error) {
	if err := req.confirmDatabase(); err != nil {
		return answer{}, err
	}
	return req.changeDatabase(databases.Change{Name: new(strings.TrimSpace(req.form("name")))})
}

// databaseRetention changes how long the backups of a database are kept.
func (req *request) databaseRetention() (answer, error) {
	days, err := req.number("backup_retention_days")
	if err == nil {
		err = req.confirmDatabase()
	}
	if err != nil {
		return answer{}, err
	}
	keep := min(time.Duration(days)*24*time.Hour, databases.MaxBackupRetention+24*time.Hour)
	return req.changeDatabase(databases.Change{BackupRetention: &keep})
}

// databaseSleep changes after how long without connections a database sleeps.
func (req *request) databaseSleep() (answer, error) {
	after, err := req.sleepAfter()
	if err != nil {
		return answer{}, err
	}
	return req.changeDatabase(databases.Change{SleepAfter: &after})
}

// sleepAfter returns the time in the field sleep_after, 0 if it is empty.
func (req *request) sleepAfter() (time.Duration, error) {
	text := strings.ReplaceAll(req.form("sleep_after"), " ", "")
	if text == "" {
		return 0, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return 0, model.Invalid("sleep_after", "must be a time such as 10m or 1h, or 0 for a server that always runs")
	}
	return after, nil
}

func (req *request) changeDatabase(change databases.Change) (answer, error) {
	_, err := req.engine.Databases.Update(req.r.Context(), req.call, req.id(), change)
	return done(req.databasePath("settings"), "database_updated"), err
}
