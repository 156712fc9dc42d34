package web

import (
	"cmp"
	"strconv"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// rolesData is what database_roles.html shows.
type rolesData struct {
	databaseData
	Roles               []model.DatabaseRole
	Accesses            []roleAccess
	Role, Access, Limit string // as typed
}

// roleAccess is an access with its description.
type roleAccess struct {
	Access model.RoleAccess
	Allows string
}

func roleAccesses() []roleAccess {
	return []roleAccess{
		{model.AccessRead, "reads what the owner makes"},
		{model.AccessWrite, "also adds, changes and deletes rows"},
		{model.AccessOwner, "everything the owner may do"},
		{model.AccessCreate, "creates databases beside this one, for tests"},
	}
}

func (req *request) databaseRoles(db databaseData, cause error) (answer, error) {
	roles, err := req.engine.Databases.RoleList(req.call, db.ID)
	data := rolesData{db, roles, roleAccesses(), req.form("role"), cmp.Or(req.form("access"), string(model.AccessRead)), req.form("limit")}
	return answer{page: "database_roles.html", data: data}, cmp.Or(cause, err)
}

// roleSecretData is what database_role_secret.html shows, once.
type roleSecretData struct {
	ID, Database, Role string
	Password, URL      string
}

func newRoleSecret(id string, r databases.RoleSecret) roleSecretData {
	return roleSecretData{id, r.Connection.Database, r.Name, r.Connection.Password.Reveal(), r.Connection.URL()}
}

// typedLimit returns the limit of sessions in a form, 0 for none.
func (req *request) typedLimit() (int, error) {
	text := req.form("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, model.Invalid("limit", "must be a number of sessions, or empty for as many as the owner may have")
	}
	return n, nil
}

func (req *request) roleCreate() (answer, error) {
	limit, err := req.typedLimit()
	if err != nil {
		return answer{}, err
	}
	in := databases.NewRole{Name: req.form("role"), Access: model.RoleAccess(req.form("access")), ConnectionLimit: limit}
	made, err := req.engine.Databases.RoleCreate(req.r.Context(), req.call, req.id(), in)
	if err != nil {
		return answer{}, err
	}
	return answer{page: "database_role_secret.html", title: "Role made", data: newRoleSecret(req.id(), made)}, nil
}

func (req *request) roleUpdate() (answer, error) {
	access := model.RoleAccess(req.form("access"))
	_, err := req.engine.Databases.RoleUpdate(req.r.Context(), req.call, req.id(), req.form("role"), databases.RoleChange{Access: &access})
	return done(req.databasePath("roles"), "role_updated"), err
}

func (req *request) roleRotate() (answer, error) {
	rotated, err := req.engine.Databases.RoleRotatePassword(req.r.Context(), req.call, req.id(), req.form("role"))
	if err != nil {
		return answer{}, err
	}
	return answer{page: "database_role_secret.html", title: "New password", data: newRoleSecret(req.id(), rotated)}, nil
}

func (req *request) roleDelete() (answer, error) {
	_, err := req.engine.Databases.RoleDelete(req.r.Context(), req.call, req.id(), req.form("role"))
	return done(req.databasePath("roles"), "role_deleted"), err
}
