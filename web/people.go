package web

import (
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
)

// peopleData is what people.html shows.
type peopleData struct {
	engine.List[model.User]
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

func (v *visit) people() (answer, error) { return v.peoplePage(peopleData{Role: model.RoleViewer}) }

func (v *visit) peoplePage(data peopleData) (answer, error) {
	var err error
	data.List, err = v.engine.UserList(v.call, v.page())
	for _, role := range model.Roles() {
		if v.person.User.Role.AtLeast(role) {
			data.Roles = append(data.Roles, role)
		}
	}
	return answer{page: "people.html", title: "People", data: data}, err
}

func (v *visit) personInvite() (answer, error) {
	data := peopleData{Email: v.form("email"), Role: model.Role(v.form("role"))}
	user, link, err := v.engine.UserInvite(v.call, data.Email, data.Role)
	if err == nil {
		data = peopleData{Role: model.RoleViewer, Link: v.personLinkTo(user, link, true)}
	}
	return v.withPeople(data, err)
}

func (v *visit) personLink() (answer, error) {
	id := v.r.PathValue("id")
	link, err := v.engine.SetupLinkCreate(v.call, id)
	data := peopleData{Role: model.RoleViewer}
	if err == nil {
		user, getErr := v.engine.UserGet(v.call, id)
		data.Link, err = v.personLinkTo(user, link, false), getErr
	}
	return v.withPeople(data, err)
}

func (v *visit) personLinkTo(user model.User, link engine.SetupLink, isNew bool) *personLink {
	return &personLink{Email: user.Email, URL: v.opts.BaseURL + SetupPath(link.Token), ExpiresAt: link.ExpiresAt, New: isNew}
}

// withPeople shows the people with how an act on one of them ended.
func (v *visit) withPeople(data peopleData, err error) (answer, error) {
	a, listErr := v.peoplePage(data)
	if err == nil {
		err = listErr
	}
	return a, err
}

func (v *visit) personRole() (answer, error) {
	if _, err := v.engine.UserRole(v.call, v.r.PathValue("id"), model.Role(v.form("role"))); err != nil {
		return v.withPeople(peopleData{Role: model.RoleViewer}, err)
	}
	return done("/people", "person_role"), nil
}

func (v *visit) personDelete() (answer, error) {
	if _, err := v.engine.UserDelete(v.call, v.r.PathValue("id")); err != nil {
		return v.withPeople(peopleData{Role: model.RoleViewer}, err)
	}
	return done("/people", "person_deleted"), nil
}
