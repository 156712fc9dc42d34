package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// NewRole describes a role to create.
type NewRole struct {
	Name            string
	Access          model.RoleAccess
	ConnectionLimit int // 0 for as many sessions as the owner
}

// RoleCreate creates a role of a database with a generated password. If the server does not follow, nothing is changed.
func (s *Service) RoleCreate(ctx context.Context, call *model.Call, id string, in NewRole) (RoleSecret, error) {
	if err := cmp.Or(model.ValidateRoleName("name", in.Name), model.ValidateRoleAccess("access", in.Access)); err != nil {
		return RoleSecret{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return RoleSecret{}, err
	}
	db, release, err := s.claimForRoles(call, id, "the creation of a role")
	if err != nil {
		return RoleSecret{}, err
	}
	defer release()
	if err := cmp.Or(refuseRole(db, in.Name), s.checkRoleLimit(db, in.ConnectionLimit)); err != nil {
		return RoleSecret{}, err
	}
	now, password := s.core.Clock(), model.GeneratePassword(core.RandomBytes())
	role := model.DatabaseRole{Name: in.Name, Access: in.Access, ConnectionLimit: in.ConnectionLimit, CreatedAt: now}
	if err := s.sealVerifier(db, &role, password); err != nil {
		return RoleSecret{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	next := db
	next.Roles = db.WithRole(role)
	if err := s.prepareRoles(ctx, db, next, role, in.Name); err != nil {
		return RoleSecret{}, err
	}
	call.Note("role", role.Name)
	call.Note("access", string(role.Access))
	db, _, err = s.changeRoles(ctx, call, db, next.Roles, "")
	return s.secretOf(db, role, password, 0), err
}

// refuseRole refuses a role of a name that is taken, or one too many.
func refuseRole(db model.Database, name string) error {
	if _, taken := db.Role(name); taken || name == db.Owner || name == db.ReadOnly || name == model.ReplicationUser(db.Owner) {
		return model.Errorf(model.CodeConflict, "name: the database already has a role %q; choose another name", name)
	}
	if len(db.Roles) >= model.MaxDatabaseRoles {
		return model.Errorf(model.CodeForbidden, "the database has %d roles, which is the most; delete one first", model.MaxDatabaseRoles)
	}
	return nil
}

func (s *Service) checkRoleLimit(db model.Database, limit int) error {
	if most := s.maxSessions(db); limit < 0 || most > 0 && limit > most {
		return model.Invalid("connection_limit", "must be from 1 to %d, which is what the server has, or the default: as many as the owner may have", most)
	}
	return nil
}

// prepareRoles gives the database the privileges that roles of these accesses need, and the role that is new or has another
// access a database of its own if it creates databases. Unless name is "", no role that was deleted under that name may be left.
func (s *Service) prepareRoles(ctx context.Context, db, next model.Database, role model.DatabaseRole, name string) error {
	before, err := s.tenant(db)
	if err != nil {
		return err
	}
	after, err := s.tenant(next)
	if err != nil {
		return err
	}
	err = s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		if name != "" {
			if err := postgres.FollowClientRoles(ctx, conn, before, name); err != nil {
				return err
			}
		}
		err := postgres.PrepareAccess(ctx, conn, after)
		if err == nil && role.Access == model.AccessCreate {
			err = postgres.CreateBeside(ctx, conn, next.FirstDatabase(role.Name))
		}
		return err
	})
	if errors.Is(err, postgres.ErrTooManyDatabases) {
		return &model.Error{Code: model.CodeConflict, Err: err, Message: fmt.Sprintf("access: a role that creates databases gets one, and there are %d beside %s, which is the most; "+
			"drop one first, as a role that has this access", postgres.MaxBeside, db.Name)}
	}
	return ServerFailed(locked("access", "the role could not be given its privileges on them", err))
}

// changeRoles records other roles of a claimed database and applies them, and ends the sessions of the role named ends.
// If the server does not follow, the record is as before. It returns how many sessions it ended.
func (s *Service) changeRoles(ctx context.Context, call *model.Call, db model.Database, roles []model.DatabaseRole, ends string) (model.Database, int, error) {
	old := db
	db, err := s.beginChange(call, db.ID, func(d *model.Database) {
		d.Roles, d.UpdatedAt, d.PendingChange.EndRole = roles, s.core.Clock(), ends
	})
	if err != nil {
		return db, 0, err
	}
	ended, err := s.applyRoles(ctx, db, ends)
	if _, kept := db.Role(ends); errors.Is(err, postgres.ErrLocked) && ends != "" && !kept { // it is closed
		s.core.Log.Warn("a deleted role is dropped later: open transactions hold locks on what it owns", "database", db.ID, "role", ends)
		err = nil
	}
	if err != nil {
		undoErr := s.takeBack(ctx, db.ID, func(d *model.Database) { d.Roles, d.UpdatedAt = old.Roles, old.UpdatedAt })
		err = locked("access", "hold locks on what the role owns: delete the role to end its access at once", err)
		return old, ended, errors.Join(ServerFailed(err), undoErr)
	}
	if ends != "" {
		call.Note("sessions_terminated", fmt.Sprint(ended))
	}
	db, err = s.concludeChange(call, db.ID)
	return db, ended, err
}
