package databases

import (
	"context"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// RoleChange holds the properties of a role to change. nil leaves one unchanged.
type RoleChange struct {
	Access          *model.RoleAccess
	ConnectionLimit *int // 0 for as many sessions as the owner
}

// RoleUpdate changes a role of a database. Another access ends its sessions. If the server does not follow, nothing is
// changed.
func (s *Service) RoleUpdate(ctx context.Context, call *model.Call, id, name string, change RoleChange) (model.DatabaseRole, error) {
	if change.Access != nil {
		if err := model.ValidateRoleAccess("access", *change.Access); err != nil {
			return model.DatabaseRole{}, err
		}
	}
	db, release, err := s.claimForRoles(call, id, "a change of a role")
	if err != nil {
		return model.DatabaseRole{}, err
	}
	defer release()
	before, err := roleOf(db, name)
	if err == nil {
		err = call.Match(before.Tag())
	}
	if err != nil {
		return model.DatabaseRole{}, err
	}
	role := before
	call.Note("role", name)
	set(call, "access", &role.Access, change.Access)
	set(call, "connection_limit", &role.ConnectionLimit, change.ConnectionLimit)
	if change.ConnectionLimit != nil { // one that it has already does not stop other changes on a smaller machine
		if err := s.checkRoleLimit(db, role.ConnectionLimit); err != nil {
			return before, err
		}
	}
	if role.Access == before.Access && role.ConnectionLimit == before.ConnectionLimit {
		return before, s.core.Change(call, func(*meta.Tx) error { return nil })
	}
	role.UpdatedAt = s.core.Clock()
	return s.storeRole(ctx, call, db, before, role)
}

// storeRole applies a change of a role.
func (s *Service) storeRole(ctx context.Context, call *model.Call, db model.Database, before, role model.DatabaseRole) (model.DatabaseRole, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	next, ends := db, ""
	next.Roles = db.WithRole(role)
	if role.Access != before.Access {
		ends = role.Name
		if err := s.prepareRoles(ctx, db, next, role, ""); err != nil {
			return before, err
		}
	}
	if _, _, err := s.changeRoles(ctx, call, db, next.Roles, ends); err != nil {
		return before, err
	}
	return role, nil
}
