package web

import (
	"holdfast/engine/model"
	"holdfast/engine/password"
)

// setupData is what setup.html shows.
type setupData struct {
	Token string
	Email string
	Known bool // the link is for an existing account with this e-mail address
	Least int  // minimum length of a password
}

func (req *request) setupForm() (answer, error) {
	data := setupData{Token: req.r.URL.Query().Get("token"), Least: password.Min}
	user, err := req.engine.Access.SetupLinkCheck(model.NewSecret(data.Token))
	if err != nil {
		return answer{}, err
	}
	data.Email, data.Known = user.Email, user.ID != ""
	return answer{page: "setup.html", title: "Set up", data: data}, nil
}

func (req *request) setup() (answer, error) {
	data := setupData{Token: req.form("token"), Email: req.form("email"), Least: password.Min}
	link := model.NewSecret(data.Token)
	token, err := req.engine.Access.SetupComplete(req.call, link, data.Email, model.NewSecret(req.form("password")), req.token())
	if err != nil {
		user, checkErr := req.engine.Access.SetupLinkCheck(link)
		if checkErr != nil {
			return answer{}, err
		}
		if user.ID != "" {
			data.Email, data.Known = user.Email, true
		}
		return answer{page: "setup.html", title: "Set up", data: data}, err
	}
	req.beginSession(token)
	return done("/", "welcome"), nil
}
