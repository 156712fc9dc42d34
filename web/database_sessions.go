package web

import (
	"cmp"

	"holdfast/engine/postgres"
)

// openSessionsData is what database_sessions.html shows.
type openSessionsData struct {
	databaseData
	Sessions []postgres.Session
}

func (req *request) databaseSessions(db databaseData, cause error) (answer, error) {
	sessions, err := req.engine.Databases.SessionList(req.r.Context(), req.call, db.ID)
	return answer{page: "database_sessions.html", data: openSessionsData{db, sessions}}, cmp.Or(cause, err)
}

func (req *request) databaseSessionCancel() (answer, error) {
	err := req.engine.Databases.SessionCancel(req.r.Context(), req.call, req.id(), req.form("session"))
	return done(req.databasePath("sessions"), "session_cancelled"), err
}

func (req *request) databaseSessionTerminate() (answer, error) {
	_, err := req.engine.Databases.SessionTerminate(req.r.Context(), req.call, req.id(), req.form("session"))
	return done(req.databasePath("sessions"), "session_terminated"), err
}
