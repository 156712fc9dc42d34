package web

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"holdfast/engine/model"
)

// logData is what database_log.html shows.
type logData struct {
	databaseData
	Lines []string
}

func (v *visit) databaseLog() (answer, error) {
	db, err := v.withDatabase("log")
	if err != nil {
		return answer{}, err
	}
	lines, err := v.engine.DatabaseLog(v.call, db.ID)
	return answer{page: "database_log.html", title: db.title(), data: logData{db, lines}, live: db.busy()}, err
}

func (v *visit) databaseSettings() (answer, error) { return v.databaseSettingsPage(nil) }

func (v *visit) databaseSettingsPage(cause error) (answer, error) {
	db, err := v.withDatabase("settings")
	if err != nil {
		return answer{}, err
	}
	return answer{page: "database_settings.html", title: db.title(), data: db, live: db.busy()}, cause
}

func (v *visit) databaseRestart() (answer, error) {
	if _, err := v.engine.DatabaseRestart(v.r.Context(), v.call, v.r.PathValue("id")); err != nil {
		return v.databaseSettingsPage(err)
	}
	return done(v.databasePath(""), "restarted"), nil
}

func (v *visit) databasePassword() (answer, error) {
	rotation, err := v.engine.DatabaseRotatePassword(v.r.Context(), v.call, v.r.PathValue("id"), v.checked("terminate_sessions"))
	if err != nil {
		return v.databaseSettingsPage(err)
	}
	db, err := v.withDatabase("connect")
	data := connectData{
		databaseData: db, Connection: rotation.Connection,
		News: "The password is new; the old one does not work any more. " + model.Count(rotation.SessionsTerminated, "session") + " ended.",
	}
	return answer{page: "database_connect.html", title: db.title(), data: data}, err
}

func (v *visit) databaseDelete() (answer, error) {
	if err := v.confirmDatabase(); err != nil {
		return v.databaseSettingsPage(err)
	}
	if _, err := v.engine.DatabaseDelete(v.r.Context(), v.call, v.r.PathValue("id")); err != nil {
		return v.databaseSettingsPage(err)
	}
	return done("/", "database_deleted"), nil
}

// confirmDatabase checks that the person typed the name of the database that
// is about to be destroyed or replaced.
func (v *visit) confirmDatabase() error {
	db, err := v.engine.DatabaseGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.confirm(db.Name)
}

func (v *visit) confirm(name string) error {
	if asTyped(v.form("confirm")) != asTyped(name) {
		return model.Invalid("confirm", "type %s to show that you mean it", name)
	}
	return nil
}

// asTyped is a name as far as one can see and type it: without space around it,
// single spaces within, and accents as keyboards make them.
func asTyped(name string) string { return strings.Join(strings.Fields(norm.NFC.String(name)), " ") }
