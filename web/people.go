package web

import (
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// peopleData is what people.html shows.
type peopleData struct {
	core.List[model.User]
	Roles []model.Role // that the signed-in person can give
	Email string       // as it was typed
	Role  model.Role
	Link  *personLink // a link that was just made
}

// personLink is a set-up link to be passed on.
type personLink struct {
	Email     string
	URL       string
	ExpiresAt time.Time
	New       bool // of an account that was just made
}

func (req *request) people() (answer, error) {
	return req.peoplePage(peopleData{Role: model.RoleViewer})
}

func (req *request) peoplePage(data peopleData) (answer, error) {
	var err error
	data.List, err = req.engine.Access.UserList(req.call, req.page())
	for _, role := range model.Roles() {
		if req.person.User.Role.AtLeast(role) {
			data.Roles = append(data.Roles, role)
		}
	}
	return answer{page: "people.html", title: "People", data: data}, err
}

func (req *request) personInvite() (answer, error) {
	data := peopleData{Email: req.form("email"), Role: model.Role(req.form("role"))}
	user, link, err := req.engine.Access.UserInvite(req.call, data.Email, data.Role)
	if err == nil {
		data = peopleData{Role: model.RoleViewer, Link: req.personLinkTo(user, link, true)}
	}
	return req.withPeople(data, err)
}

func (req *request) personLink() (answer, error) {
	id := req.r.PathValue("id")
	link, err := req.engine.Access.SetupLinkCreate(req.call, id)
	data := peopleData{Role: model.RoleViewer}
	if err == nil {
		user, getErr := req.engine.Access.UserGet(req.call, id)
		data.Link, err = req.personLinkTo(user, link, false), getErr
	}
	return req.withPeople(data, err)
}

func (req *request) personLinkTo(user model.User, link access.SetupLink, isNew bool) *personLink {
	return &personLink{Email: user.Email, URL: req.opts.BaseURL + SetupPath(link.Token), ExpiresAt: link.ExpiresAt, New: isNew}
}

// withPeople shows the people with how an act on one of them ended.
func (req *request) withPeople(data peopleData, err error) (answer, error) {
	a, listErr := req.peoplePage(data)
	if err == nil {
		err = listErr
	}
	return a, err
}

func (req *request) personRole() (answer, error) {
	if _, err := req.engine.Access.UserRole(req.call, req.r.PathValue("id"), model.Role(req.form("role"))); err != nil {
		return req.withPeople(peopleData{Role: model.RoleViewer}, err)
	}
	return done("/people", "person_role"), nil
}

func (req *request) personDelete() (answer, error) {
	if _, err := req.engine.Access.UserDelete(req.call, req.r.PathValue("id")); err != nil {
		return req.withPeople(peopleData{Role: model.RoleViewer}, err)
	}
	return done("/people", "person_deleted"), nil
}
