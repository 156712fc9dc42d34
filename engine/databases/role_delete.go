package databases

import (
	"context"

	"holdfast/engine/model"
)

// RoleDelete deletes a role of a database and ends its sessions, and returns how many. What it owns becomes the owner's.
func (s *Service) RoleDelete(ctx context.Context, call *model.Call, id, name string) (ended int, err error) {
	db, release, err := s.claimForRoles(call, id, "the deletion of a role")
	if err != nil {
		return 0, err
	}
	defer release()
	role, err := roleOf(db, name)
	if err == nil {
		err = call.Match(role.Tag())
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	call.Note("role", name)
	_, ended, err = s.changeRoles(ctx, call, db, db.WithoutRole(name), name)
	return ended, err
}
