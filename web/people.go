package web

import (
	"cmp"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// peopleData is what people.html shows.
type peopleData struct {
	core.List[model.User]
	Roles []model.Role // roles that the signed-in user can assign
	Email string       // as typed
	Role  model.Role
	Link  *personLink // a link that was just created
}

// personLink is a setup link to pass on.
type personLink struct {
	Email     string
	URL       string
	ExpiresAt time.Time
	New       bool // for an account that was just created
}

func (req *request) people(cause error) (answer, error) {
	data := peopleData{Role: model.RoleViewer}
	if req.r.PostForm.Has("email") {
		data.Email, data.Role = req.form("email"), model.Role(req.form("role"))
	}
	a, err := req.peoplePage(data)
	return a, cmp.Or(cause, err)
}

func (req *request) peoplePage(data peopleData) (answer, error) {
	var err error
	data.List, err = req.engine.Access.UserList(req.call, access.UserFilter{}, req.page())
	for _, role := range model.Roles() {
		if req.person.User.Role.AtLeast(role) {
			data.Roles = append(data.Roles, role)
		}
	}
	return answer{page: "people.html", title: "People", data: data}, err
}

func (req *request) personInvite() (answer, error) {
	user, link, err := req.engine.Access.UserInvite(req.call, req.form("email"), model.Role(req.form("role")))
	if err != nil {
		return answer{}, err
	}
	return req.peopleWith(user, link, true)
}

func (req *request) personLink() (answer, error) {
	link, err := req.engine.Access.SetupLinkCreate(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	user, err := req.engine.Access.UserGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	return req.peopleWith(user, link, false)
}

// peopleWith shows the people page with a new link.
func (req *request) peopleWith(user model.User, link access.SetupLink, isNew bool) (answer, error) {
	return req.peoplePage(peopleData{Role: model.RoleViewer, Link: &personLink{
		Email: user.Email, URL: req.opts.BaseURL + access.SetupPath(link.Token), ExpiresAt: link.ExpiresAt, New: isNew,
	}})
}

func (req *request) personRole() (answer, error) {
	_, err := req.engine.Access.UserRole(req.call, req.id(), model.Role(req.form("role")))
	return done("/people", "person_role"), err
}

func (req *request) personDelete() (answer, error) {
	_, err := req.engine.Access.UserDelete(req.call, req.id())
	return done("/people", "person_deleted"), err
}
