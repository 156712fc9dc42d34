package web

import (
	"cmp"
	"strconv"
	"unicode/utf8"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/recovery"
)

// rolesData is what database_roles.html shows.
type rolesData struct {
	databaseData
	Roles               []model.DatabaseRole
	Accesses            []roleAccess
	Role, Access, Limit string             // as typed
	Databases           []postgresDatabase // the main one and those beside it, nil if there are none or the database sleeps
	Exports             bool               // whether the appliance makes exports of them
}

// postgresDatabase is a database of PostgreSQL with its export, nil for none.
type postgresDatabase struct {
	postgres.Database
	Export *recovery.ExportView
}

// Named reports whether a request can name the database.
func (d postgresDatabase) Named() bool { return utf8.ValidString(d.Name) }

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
	data := rolesData{
		databaseData: db, Roles: roles, Accesses: roleAccesses(),
		Role: req.form("role"), Access: cmp.Or(req.form("access"), string(model.AccessRead)), Limit: req.form("limit"),
		Exports: req.engine.Core.Config.Exports && !db.Sandbox,
	}
	if err == nil && db.Status == model.DatabaseAvailable && !req.letsSleep(db) {
		data.Databases, err = req.postgresDatabases(db)
	}
	return answer{page: "database_roles.html", data: data}, cmp.Or(cause, err)
}

// postgresDatabases returns the databases of a server, nil if there are none beside the main one.
func (req *request) postgresDatabases(db databaseData) ([]postgresDatabase, error) {
	found, err := req.engine.Databases.PostgresDatabaseList(req.r.Context(), req.call, db.ID)
	if err != nil || len(found) == 1 {
		return nil, err
	}
	exports, err := req.engine.Recovery.ExportsBeside(req.call, db.ID)
	var all []postgresDatabase
	for _, d := range found {
		one := postgresDatabase{Database: d}
		if x, exported := exports[d.Name]; exported {
			one.Export = &x
		}
		all = append(all, one)
	}
	return all, err
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
	err := req.confirm(req.form("role"))
	if err == nil {
		_, err = req.engine.Databases.RoleDelete(req.r.Context(), req.call, req.id(), req.form("role"))
	}
	return done(req.databasePath("roles"), "role_deleted"), err
}
