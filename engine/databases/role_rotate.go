package databases

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// RoleRotatePassword gives a role of a database another password, which is generated, and ends its sessions.
func (s *Service) RoleRotatePassword(ctx context.Context, call *model.Call, id, name string) (RoleSecret, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return RoleSecret{}, err
	}
	db, release, err := s.claimForRoles(call, id, "a rotation of a role's password")
	if err != nil {
		return RoleSecret{}, err
	}
	defer release()
	role, err := roleOf(db, name)
	if err != nil {
		return RoleSecret{}, err
	}
	password := model.GeneratePassword(core.RandomBytes())
	if err := s.sealVerifier(db, &role, password); err != nil {
		return RoleSecret{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	call.Note("role", name)
	db, ended, err := s.changeRoles(ctx, call, db, db.WithRole(role), name)
	return s.secretOf(db, role, password, ended), err
}
