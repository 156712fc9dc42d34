package web

import (
	"cmp"

	"holdfast/engine/access"
	"holdfast/engine/core"
)

// sessionsData is what sessions.html shows.
type sessionsData struct {
	core.List[access.PersonSession]
	Current string // the hash of this session's token
}

func (req *request) sessions(cause error) (answer, error) {
	list, err := req.engine.Access.SessionList(req.call, access.SessionFilter{}, req.page())
	return answer{page: "sessions.html", title: "Sessions", data: sessionsData{list, req.person.Session.TokenHash}}, cmp.Or(cause, err)
}

func (req *request) sessionEnd() (answer, error) {
	err := req.engine.Access.SessionEnd(req.call, req.id())
	return done("/sessions", "session_ended"), err
}

func (req *request) personSignOut() (answer, error) {
	_, _, err := req.engine.Access.UserSignOut(req.call, req.id())
	return done("/people", "person_signed_out"), err
}
