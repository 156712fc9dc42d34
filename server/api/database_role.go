package api

import (
	"context"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewDatabaseRole returns the wire form of a role of a database.
func NewDatabaseRole(r model.DatabaseRole) wire.DatabaseRole {
	return wire.DatabaseRole{
		Name: r.Name, Access: wire.RoleAccess(r.Access), ConnectionLimit: orAbsent(r.ConnectionLimit),
		PasswordSetAt: utcOrAbsent(r.PasswordSetAt), CreatedAt: utc(r.CreatedAt), UpdatedAt: utc(r.UpdatedAt),
	}
}

// taggedRole returns the wire form of a role, and sets the ETag of the response.
func taggedRole(call *model.Call, r model.DatabaseRole, err error) (wire.DatabaseRole, error) {
	if err == nil {
		call.ETag = r.Tag()
	}
	return NewDatabaseRole(r), err
}

func newRoleSecret(call *model.Call, r databases.RoleSecret, err error) (wire.DatabaseRoleSecret, error) {
	if err != nil {
		return wire.DatabaseRoleSecret{}, err
	}
	call.ETag = r.Tag()
	return wire.DatabaseRoleSecret{
		DatabaseRole: NewDatabaseRole(r.DatabaseRole), Connection: NewConnection(r.Connection, databases.DefaultCAFile), SessionsTerminated: r.SessionsTerminated,
	}, nil
}

// RoleInput names a role of a database.
type RoleInput struct {
	DatabaseInput
	Name string `path:"name" maxLength:"63" doc:"Name of the role." example:"reports"`
}

func (h *handlers) roleList(_ context.Context, call *model.Call, in *DatabaseInput) (wire.DatabaseRoleList, error) {
	roles, err := h.engine.Databases.RoleList(call, in.ID)
	return wire.DatabaseRoleList{Roles: convert(roles, NewDatabaseRole)}, err
}

type createRoleInput struct {
	DatabaseInput
	Body wire.CreateDatabaseRole
}

func (h *handlers) roleCreate(ctx context.Context, call *model.Call, in *createRoleInput) (wire.DatabaseRoleSecret, error) {
	role := databases.NewRole{Name: in.Body.Name, Access: model.RoleAccess(in.Body.Access)}
	if limit := in.Body.ConnectionLimit; limit != nil {
		role.ConnectionLimit = int(*limit)
	}
	made, err := h.engine.Databases.RoleCreate(ctx, call, in.ID, role)
	return newRoleSecret(call, made, err)
}

func (h *handlers) roleGet(_ context.Context, call *model.Call, in *RoleInput) (wire.DatabaseRole, error) {
	role, err := h.engine.Databases.RoleGet(call, in.ID, in.Name)
	return taggedRole(call, role, err)
}

type updateRoleInput struct {
	RoleInput
	Body wire.UpdateDatabaseRole
}

func (h *handlers) roleUpdate(ctx context.Context, call *model.Call, in *updateRoleInput) (wire.DatabaseRole, error) {
	role, err := h.engine.Databases.RoleUpdate(ctx, call, in.ID, in.Name, databases.RoleChange{
		Access: (*model.RoleAccess)(in.Body.Access), ConnectionLimit: units(in.Body.ConnectionLimit, 1),
	})
	return taggedRole(call, role, err)
}

func (h *handlers) roleDelete(ctx context.Context, call *model.Call, in *RoleInput) (wire.DeletedDatabaseRole, error) {
	done, err := h.engine.Databases.RoleDelete(ctx, call, in.ID, in.Name)
	return wire.DeletedDatabaseRole{Name: in.Name, Deleted: true, SessionsTerminated: done.SessionsTerminated, DatabaseDropped: orAbsent(done.Dropped), DatabaseKept: orAbsent(done.Kept)}, err
}

type rotateRoleInput struct {
	RoleInput
	Body *NoFields
}

func (h *handlers) roleRotatePassword(ctx context.Context, call *model.Call, in *rotateRoleInput) (wire.DatabaseRoleSecret, error) {
	rotated, err := h.engine.Databases.RoleRotatePassword(ctx, call, in.ID, in.Name)
	return newRoleSecret(call, rotated, err)
}
